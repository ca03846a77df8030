//! A piece of a list that stands on the screen as a whole: one line, or a wrapped text.

use super::escape::escape;
use super::line::{Line, Paint, fold, shorten};
use super::style::Style;

/// One entry of a section.
#[derive(Default)]
pub(crate) struct Item {
    /// The line that stays as long as the item does.
    pub first: Line,
    /// What `first` becomes when the others are left out: the text without its last clauses.
    short: Option<Line>,
    /// The lines after it.
    pub more: Vec<Line>,
}

impl From<Line> for Item {
    fn from(first: Line) -> Self {
        Self { first, ..Self::default() }
    }
}

impl Item {
    /// `text` behind `prefix`, in as many lines as it needs; later lines start where the text does, or after `indent`
    /// columns where that is given.
    pub(crate) fn wrapped(prefix: Line, paint: Paint, text: &str, indent: Option<usize>, style: &Style) -> Self {
        let text = escape(text, style.unicode);
        let indent = indent.unwrap_or_else(|| prefix.width());
        let room = style.columns.saturating_sub(prefix.width());
        let folded = fold(&text, room, style.columns - indent.min(style.columns));
        let mut lines = folded.iter();
        let first = prefix.clone().with(paint, lines.next().map_or("", String::as_str), style);
        let short = prefix.with(paint, &shorten(&text, room, style), style);
        let more = lines.map(|line| Line::of(paint, &format!("{}{line}", " ".repeat(indent)), style)).collect();
        Self { first, short: Some(short), more }
    }

    /// Lines on the screen.
    pub(crate) fn lines(&self) -> usize {
        1 + self.more.len()
    }

    /// Makes it one line.
    pub(crate) fn cut(&mut self) {
        self.more.clear();
        if let Some(short) = self.short.take() {
            self.first = short;
        }
    }
}
