//! What results can say to be unavailable, by name, each declared once ([`declared`]).
//!
//! Owns the names that stand in `unavailable[].what` and what they mean; whoever cannot observe something says why, and
//! what would change that.

pub mod declared;

use crate::quantity::Unavailable;
use std::fmt::Display;

/// Something that can be unavailable.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name as it is printed. `<word>` stands for what differs from case to case: `probe <name>`.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Why it may be missing.
    pub why: &'static str,
    /// What helps.
    pub helps: &'static str,
}

impl Missing {
    /// It is unavailable. For names without a `<word>`.
    pub fn because(&self, reason: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
        self.of(&[], reason, remedy)
    }

    /// This case of it is unavailable: `values` stand for the words of the name, in their order.
    pub fn of(&self, values: &[&dyn Display], reason: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
        let mut what = String::new();
        let mut values = values.iter();
        for part in parts(self.name) {
            match part {
                Part::Text(text) => what.push_str(text),
                Part::Word(word) => what.push_str(&values.next().map_or_else(|| word.to_owned(), ToString::to_string)),
            }
        }
        Unavailable { what, reason: reason.into(), remedy: remedy.into() }
    }

    /// Whether `what` is this name, with anything but nothing for its words.
    fn fits(&self, what: &str) -> bool {
        let mut rest = what;
        // A word before the text that comes next; the text is looked for as far right as the rest allows.
        let mut open = false;
        for part in parts(self.name) {
            match part {
                Part::Word(_) => open = true,
                Part::Text(text) if !open => match rest.strip_prefix(text) {
                    Some(left) => rest = left,
                    None => return false,
                },
                Part::Text(text) => match rest.char_indices().skip(1).find(|(at, _)| rest[*at..].starts_with(text)) {
                    Some((at, _)) => (rest, open) = (&rest[at + text.len()..], false),
                    None => return false,
                },
            }
        }
        rest.is_empty() != open
    }

    /// Characters that are no words: the more, the closer a name that fits.
    fn literal(&self) -> usize {
        parts(self.name).map(|part| if let Part::Text(text) = part { text.len() } else { 0 }).sum()
    }
}

/// The declaration of what is printed as `what`: the one of several that leaves least open.
pub fn named(what: &str) -> Option<&'static Missing> {
    declared::ALL.iter().copied().filter(|one| one.fits(what)).max_by_key(|one| one.literal())
}

#[derive(Clone, Copy)]
enum Part {
    Text(&'static str),
    /// With its angle brackets.
    Word(&'static str),
}

fn parts(name: &'static str) -> impl Iterator<Item = Part> {
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
        Some(if is_word { Part::Word(part) } else { Part::Text(part) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_each_has_its_text() {
        let names: BTreeSet<_> = declared::ALL.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), declared::ALL.len());
        for one in declared::ALL {
            assert!(!one.what.is_empty() && !one.why.is_empty() && !one.helps.is_empty(), "{}", one.name);
        }
    }

    #[test]
    fn what_is_printed_leads_back_to_its_declaration() {
        for one in declared::ALL {
            let words = parts(one.name).filter(|part| matches!(part, Part::Word(_))).count();
            let values: Vec<&dyn Display> = vec![&"x 7"; words];
            let what = one.of(&values, "", "").what;
            assert!(!what.contains('<'), "{what}");
            assert_eq!(named(&what).map(|found| found.name), Some(one.name), "{what}");
        }
        assert_eq!(named("probe first_wait").map(|one| one.name), Some("probe <name>"));
        assert_eq!(named("child launches: probe fault").map(|one| one.name), Some("child launches: <what>"));
        assert_eq!(named("probe "), None);
        assert_eq!(named("nothing of that name"), None);
    }
}
