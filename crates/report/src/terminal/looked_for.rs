//! The line that says how large a cost could have gone unseen.

use super::item::Item;
use super::line::{Line, Paint};
use super::sections::Section;
use super::style::Style;
use slowpath_analysis::printed::looked_for::{LookedFor, sentence};

/// One sentence for all recordings of a diagnosis; shortened where there is no room.
pub(super) fn section(all: &[LookedFor], style: &Style) -> Section {
    let Some(text) = sentence(all) else { return Section::default() };
    let item = Item::wrapped(Line::of(Paint::Quiet, "Limits: ", style), Paint::Quiet, &text, Some(2), style);
    Section { items: vec![item], what: "unseen costs", spaced: true, ..Section::default() }
}
