//! Declared names of which a part differs from case to case: `probe <name>` stands for `probe first_wait`.
//!
//! Owns how such a name is filled and recognised. Leaves what names mean to those who declare them.

use std::fmt::Display;

#[derive(Clone, Copy)]
enum NamePart {
    Text(&'static str),
    /// With its angle brackets.
    Word(&'static str),
}

fn parts(name: &'static str) -> impl Iterator<Item = NamePart> {
    let mut rest = name;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let is_word = rest.starts_with('<');
        let end =
            if is_word { rest.find('>').map_or(rest.len(), |at| at + 1) } else { rest.find('<').unwrap_or(rest.len()) };
        let (part, left) = rest.split_at(end);
        rest = left;
        Some(if is_word { NamePart::Word(part) } else { NamePart::Text(part) })
    })
}

/// The name with `values` for its words, in their order. A word without a value stays.
pub fn filled(name: &'static str, values: &[&dyn Display]) -> String {
    let mut text = String::new();
    let mut values = values.iter();
    for part in parts(name) {
        match part {
            NamePart::Text(literal) => text.push_str(literal),
            NamePart::Word(word) => text.push_str(&values.next().map_or_else(|| word.to_owned(), ToString::to_string)),
        }
    }
    text
}

/// Whether `text` is this name, with anything but nothing for its words.
pub fn fits(name: &'static str, text: &str) -> bool {
    let mut rest = text;
    // A word before the text that comes next; the text is looked for as far right as the rest allows.
    let mut open = false;
    for part in parts(name) {
        match part {
            NamePart::Word(_) => open = true,
            NamePart::Text(text) if !open => match rest.strip_prefix(text) {
                Some(left) => rest = left,
                None => return false,
            },
            NamePart::Text(text) => match rest.char_indices().skip(1).find(|(at, _)| rest[*at..].starts_with(text)) {
                Some((at, _)) => (rest, open) = (&rest[at + text.len()..], false),
                None => return false,
            },
        }
    }
    rest.is_empty() != open
}

/// Bytes that are no words: the more, the closer a name that fits.
pub fn literal(name: &'static str) -> usize {
    parts(name).map(|part| if let NamePart::Text(text) = part { text.len() } else { 0 }).sum()
}
