//! One line of output: text with paint that never exceeds its columns.

use super::escape::escape;
use super::style::Style;

/// How text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Bold,
    Good,
    Bad,
    Quiet,
}

impl Paint {
    /// Parameter of SGR (ECMA-48, 8.3.117).
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Good => Some("32"),
            Self::Bad => Some("31"),
            Self::Quiet => Some("2"),
        }
    }
}

/// Columns that a character may take. Scripts with wide characters take two; to know which would need a table, so all
/// that is neither ASCII nor drawn by us counts as wide: a line can end early, but never wraps.
fn columns(c: char) -> usize {
    if c.is_ascii() || "─│├┤●•…−–·×µ▁▂▃▄▅▆▇█".contains(c) { 1 } else { 2 }
}

/// Columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// A text cut to `limit` columns, with a mark where it is cut.
pub(crate) fn cut(text: &str, limit: usize, style: &Style) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mark = if style.unicode { "…" } else { "~" };
    let mut kept = String::new();
    let mut used = width(mark);
    for c in text.chars() {
        used += columns(c);
        if used > limit {
            break;
        }
        kept.push(c);
    }
    if limit > 0 {
        kept.push_str(mark);
    }
    kept
}

/// A text cut or filled to exactly `columns`.
pub(crate) fn left(text: &str, columns: usize, style: &Style) -> String {
    let cut = cut(text, columns, style);
    let fill = " ".repeat(columns.saturating_sub(width(&cut)));
    cut + &fill
}

/// As [`left`], filled in front.
pub(crate) fn right(text: &str, columns: usize, style: &Style) -> String {
    let cut = cut(text, columns, style);
    " ".repeat(columns.saturating_sub(width(&cut))) + &cut
}

/// Breaks a text at spaces into lines: the first of at most `first` columns, the others of at most `columns`. A word
/// that is longer stays whole.
pub(crate) fn fold(text: &str, first: usize, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let room = if lines.len() == 1 { first } else { columns };
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks a text into lines of at most the style's columns; what remains after `limit` lines is cut.
pub(crate) fn wrap(text: &str, limit: usize, style: &Style) -> Vec<String> {
    let mut lines = fold(text, style.columns, style.columns);
    if lines.len() > limit && limit > 0 {
        let rest = lines.split_off(limit - 1);
        lines.push(rest.join(" "));
    }
    lines.iter().map(|line| cut(line, style.columns, style)).collect()
}

/// A line under construction.
#[derive(Clone, Default)]
pub(crate) struct Line {
    parts: Vec<(Paint, String)>,
}

impl Line {
    /// A line of one paint. The text is escaped.
    pub(crate) fn of(paint: Paint, text: &str, style: &Style) -> Self {
        Self::default().with(paint, text, style)
    }

    /// Appends a text, escaped.
    #[must_use]
    pub(crate) fn with(mut self, paint: Paint, text: &str, style: &Style) -> Self {
        self.parts.push((paint, escape(text, style.unicode)));
        self
    }

    /// Columns of the whole text.
    pub(crate) fn width(&self) -> usize {
        self.parts.iter().map(|(_, text)| width(text)).sum()
    }

    /// The line, cut to the columns, painted where the style allows it.
    pub(crate) fn print(&self, style: &Style) -> String {
        let mut printed = String::new();
        let mut room = style.columns;
        for (paint, text) in &self.parts {
            let text = cut(text, room, style);
            room -= width(&text).min(room);
            match paint.code().filter(|_| style.colour && !text.is_empty()) {
                Some(code) => printed.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
                None => printed.push_str(&text),
            }
        }
        printed.trim_end_matches(' ').to_owned()
    }
}
