//! Text of others on a terminal: what could move the cursor, change colours, reorder or hide text is shown as a code.

use slowpath_tables::is_dangerous;

/// `text` with dangerous characters as `\u{...}`; everything else unchanged.
pub fn escape_terminal(text: &str) -> String {
    escape(text, true)
}

/// As [`escape_terminal`]; without `unicode` all that is not ASCII is shown as codes.
pub(crate) fn escape(text: &str, unicode: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_dangerous(c) || (!unicode && !c.is_ascii()) {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Lines, with colours and bold type: ESC [ numbers m (ECMA-48, SGR), which changes how text looks and nothing else.
pub fn screen_of(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| c != '\n' && is_dangerous(c)) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = sgr(rest).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
        let (one, behind) = rest.split_at(length);
        if length > 2 && one.starts_with('\u{1b}') {
            shown.push_str(one)
        } else {
            shown.push_str(&escape_terminal(one))
        }
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// The length of the sequence that begins here, where it is one of colour or type.
fn sgr(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    (numbers.as_bytes()[end] == b'm').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_a_code() {
        assert_eq!(escape_terminal("a\x1b[31mb\u{202e}c\u{9b}0m\n"), "a\\u{1b}[31mb\\u{202e}c\\u{9b}0m\\u{a}");
        assert_eq!(escape_terminal("Änderung 日本.txt"), "Änderung 日本.txt");
        assert_eq!(escape("Ä", false), "\\u{c4}");
    }

    proptest! {
        #[test]
        fn no_control_and_no_directional_character_survives(text in any::<String>()) {
            let escaped = escape_terminal(&text);
            let directional =
                |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
            prop_assert!(!escaped.chars().any(|c| c.is_control() || directional(c)));
            prop_assert_eq!(escape_terminal(&escaped), escaped);
        }

        #[test]
        fn plain_text_is_unchanged(text in "[ -~äöü日本]{0,40}") {
            prop_assert_eq!(escape_terminal(&text), text);
        }

        #[test]
        fn without_unicode_only_ascii_is_left(text in any::<String>()) {
            prop_assert!(escape(&text, false).chars().all(|c| c.is_ascii() && !c.is_ascii_control()));
        }
    }

    #[test]
    fn a_line_has_no_other_line_and_a_screen_only_colours() {
        assert_eq!(escape_terminal("a\nslowpath: forged\u{9b}2J"), "a\\u{a}slowpath: forged\\u{9b}2J");
        assert_eq!(screen_of("\u{1b}[1;31mred\u{1b}[0m\nÄ"), "\u{1b}[1;31mred\u{1b}[0m\nÄ");
        assert_eq!(screen_of("\u{1b}[2Jx\u{1b}]0;t\u{7}\u{1b}"), "\\u{1b}[2Jx\\u{1b}]0;t\\u{7}\\u{1b}");
        assert_eq!(screen_of("\u{9b}31m\u{202e}\r"), "\\u{9b}31m\\u{202e}\\u{d}");
        assert_eq!(screen_of("\u{1b}[31"), "\\u{1b}[31");
    }
}
