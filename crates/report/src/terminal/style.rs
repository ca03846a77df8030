//! What the terminal can show.

/// What the output may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Characters outside ASCII.
    pub unicode: bool,
    /// Colours and bold type.
    pub colour: bool,
    /// Columns.
    pub columns: usize,
    /// Lines, without the one for the next prompt.
    pub lines: usize,
}

impl Style {
    /// For 80x24, ASCII, no colour: what every place can show.
    pub const PLAIN: Self = Self { unicode: false, colour: false, columns: 80, lines: 23 };

    /// By the environment; `is_terminal` says whether the output goes to one.
    pub fn detect(is_terminal: bool) -> Self {
        Self::from_environment(is_terminal, |name| std::env::var(name).ok())
    }

    /// As [`Style::detect`] with the environment given.
    ///
    /// The locale is that of `LC_ALL`, `LC_CTYPE`, `LANG`, the first that is set and not empty (POSIX.1, 8.2). Colour
    /// needs a terminal that is not `dumb`, and `NO_COLOR` unset or empty (no-color.org).
    pub fn from_environment(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_ascii_lowercase();
        let unicode = locale.contains("utf-8") || locale.contains("utf8");
        let colour = is_terminal && set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb");
        Self { unicode, colour, ..Self::PLAIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(is_terminal: bool, variables: &[(&str, &str)]) -> Style {
        Style::from_environment(is_terminal, |name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colour_needs_a_terminal_and_no_objection() {
        let term = ("TERM", "xterm");
        assert!(style(true, &[term]).colour);
        assert!(style(true, &[term, ("NO_COLOR", "")]).colour);
        assert!(!style(false, &[term]).colour);
        assert!(!style(true, &[term, ("NO_COLOR", "1")]).colour);
        assert!(!style(true, &[("TERM", "dumb")]).colour);
    }

    #[test]
    fn unicode_follows_the_first_locale_variable_that_is_set() {
        assert!(style(true, &[("LANG", "de_DE.UTF-8")]).unicode);
        assert!(style(true, &[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")]).unicode);
        assert!(!style(true, &[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]).unicode);
        assert!(!style(true, &[]).unicode);
    }
}
