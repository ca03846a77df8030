//! What is wrong with a file that people write, and in which line.

/// What is wrong with the text of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct FileProblem {
    /// Line, from 1, where one can be named.
    pub line: Option<usize>,
    /// In words.
    pub text: String,
}

impl FileProblem {
    /// A problem of the whole file.
    pub fn whole(words: impl Into<String>) -> Self {
        Self { line: None, text: words.into() }
    }

    /// A problem at a byte of the file's text.
    pub fn at(text: &str, offset: usize, words: impl Into<String>) -> Self {
        let line = text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
        Self { line: Some(line), text: words.into() }
    }

    /// What a parser reports, in one line; `offset` is the byte that it names, if any.
    pub fn of_parser(text: &str, offset: Option<usize>, message: &str) -> Self {
        let words = message.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        match offset {
            Some(offset) => Self::at(text, offset, words),
            None => Self::whole(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_the_line_of_its_byte() {
        let text = "one\ntwo\nthree";
        for (offset, line) in [(0, 1), (3, 1), (4, 2), (8, 3), (999, 3)] {
            assert_eq!(FileProblem::at(text, offset, "wrong").to_string(), format!("line {line}: wrong"));
        }
        assert_eq!(FileProblem::whole("wrong").to_string(), "wrong");
        assert_eq!(FileProblem::of_parser(text, Some(4), "is\n  wrong").to_string(), "line 2: is; wrong");
        assert_eq!(FileProblem::of_parser(text, None, "wrong").line, None);
    }
}
