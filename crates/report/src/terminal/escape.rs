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
}
