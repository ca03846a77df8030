//! Explanations on a terminal: one name with its paragraphs, or the list of all.

use super::line::wrap;
use super::style::Style;
use crate::explain::{Explanation, NameKind};

/// The explanations of one name.
pub fn explained(found: &[Explanation], style: &Style) -> String {
    let texts: Vec<String> = found.iter().map(|one| of_one(one, style)).collect();
    texts.join("\n")
}

fn of_one(one: &Explanation, style: &Style) -> String {
    let mut text = format!("{}: {}\n", one.name, one.title);
    for paragraph in &one.paragraphs {
        text.push_str(&format!("\n{}\n", paragraph.heading));
        let narrow = Style { columns: style.columns.saturating_sub(2).max(20), ..*style };
        for line in wrap(&paragraph.text, 0, &narrow) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// Characters of the column of names: a few are whole sentences, and would push all titles off the screen.
const WIDEST: usize = 32;

/// All names with their titles, by kind.
pub fn names(all: &[Explanation]) -> String {
    let mut text = String::new();
    for kind in NameKind::ALL {
        let of_kind: Vec<&Explanation> = all.iter().filter(|one| one.kind == kind).collect();
        let width = of_kind.iter().map(|one| one.name.len()).max().unwrap_or(0).min(WIDEST);
        text.push_str(&format!("{}{}\n", if text.is_empty() { "" } else { "\n" }, kind.heading()));
        for one in of_kind {
            text.push_str(&format!("  {:width$}  {}\n", one.name, one.title));
        }
    }
    text
}
