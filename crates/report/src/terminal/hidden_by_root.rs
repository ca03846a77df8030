//! The table of what a launch as root cannot show.

use super::item::Item;
use super::line::{Line, Paint, right};
use super::sections::Section;
use super::style::Style;
use slowpath_diagnose::printed::HiddenByRoot;

/// Columns of a number of artifacts.
const COUNT: usize = 5;

/// Nothing where the launch did not run as root, or hid nothing.
pub(super) fn section(hidden: Option<&HiddenByRoot>, style: &Style) -> Section {
    let Some(hidden) = hidden.filter(|hidden| hidden.unreadable > 0) else { return Section::default() };
    let head = format!(
        "Root reads everything; user {} may not read {} of the {} artifacts it used:",
        hidden.uid, hidden.unreadable, hidden.used
    );
    let items = hidden.rules.iter().map(|rule| {
        let count = Line::of(Paint::Plain, &format!("{}  ", right(&rule.artifacts.to_string(), COUNT, style)), style);
        Item::wrapped(count, Paint::Plain, &format!("{}: {}", rule.path, rule.rule), None, style)
    });
    Section {
        head: vec![
            Line::of(Paint::Bad, &head, style),
            Line::of(Paint::Quiet, "what that costs is shown by `slowpath diagnose --user NAME`", style),
        ],
        items: items.collect(),
        what: "rules",
        spaced: true,
        ..Section::default()
    }
}
