//! Lines of documents and subjects of commits that are too long to read beside something else.

/// Characters that a line of a document may have.
pub const LINE: usize = 120;

/// Characters that the subject of a commit may have: what `git log --oneline` shows in 80 columns.
pub const SUBJECT: usize = 72;

/// Lines of a Markdown text that are longer than [`LINE`]: number from 1, and characters. Code, tables and comments stay as
/// they are, as does a line of one long word.
pub fn long_lines(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    // Four spaces begin code after an empty line, and go on with a paragraph or an item otherwise.
    let (mut after_empty, mut in_code, mut in_list) = (true, false, false);
    for (at, line) in text.lines().enumerate() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if content.is_empty() {
            after_empty = true;
            continue;
        }
        in_list = starts_item(content) || (in_list && (indent > 0 || !after_empty));
        in_code = indent >= 4 && !in_list && (after_empty || in_code);
        after_empty = false;
        let stays = in_fence || in_code || content.starts_with('|') || content.starts_with("<!--");
        let length = line.chars().count();
        if !stays && length > LINE && can_be_broken(content) {
            found.push((at + 1, length));
        }
    }
    found
}

fn starts_item(content: &str) -> bool {
    let marker = content.split(' ').next().unwrap_or(content);
    matches!(marker, "-" | "*" | "+") || marker.strip_suffix('.').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Whether there is a space before the limit behind which more than a marker or the text of a link would remain.
fn can_be_broken(content: &str) -> bool {
    content.split(' ').map(|word| word.chars().count()).max().is_some_and(|longest| longest <= LINE - 10)
}

/// What is wrong with the subject of a commit.
pub fn subject_problem(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > SUBJECT {
        return Some(format!("{length} characters, more than {SUBJECT}"));
    }
    subject.ends_with('.').then(|| "ends with a full stop".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_words_is_long_in_a_paragraph_and_in_an_item() {
        let words = "word ".repeat(25);
        assert_eq!(long_lines(&format!("short\n{words}\n")), [(2, 125)]);
        assert_eq!(long_lines(&format!("1. short\n\n   {words}\n")), [(3, 128)]);
        assert_eq!(long_lines(&format!("- short\n    - {words}\n")), [(2, 131)]);
        assert_eq!(long_lines(&format!("text\n    {words}\n")), [(2, 129)]);
        assert_eq!(long_lines(&"é".repeat(LINE)), []);
    }

    #[test]
    fn code_tables_and_long_links_are_left_alone() {
        let words = "word ".repeat(25);
        let link = "x".repeat(LINE);
        for text in [
            format!("```\n{words}\n```\n"),
            format!("text\n\n    {words}\n    {words}\n"),
            format!("| {words} |\n"),
            format!("<!-- {words} -->\n"),
            format!("- [a]({link})\n"),
        ] {
            assert_eq!(long_lines(&text), [], "{text}");
        }
    }

    #[test]
    fn a_subject_has_at_most_72_characters_and_no_full_stop() {
        assert_eq!(subject_problem(&"x".repeat(SUBJECT)), None);
        assert!(subject_problem(&"x".repeat(SUBJECT + 1)).unwrap().contains("73 characters"));
        assert!(subject_problem("Add a check.").is_some());
    }
}
