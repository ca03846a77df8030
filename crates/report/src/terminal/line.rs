//! One line of output: text with paint that never exceeds its columns.

use super::escape::escape;
use super::style::Style;
use unicode_width::UnicodeWidthChar;

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

/// Columns that a character takes at most, outside of East Asian locales (Unicode Standard Annex 11). What takes none, such as an accent
/// on the letter before it, counts as one: a line can end early, but does not wrap, and a name of nothing but accents ends.
fn columns(c: char) -> usize {
    c.width().unwrap_or(1).max(1)
}

/// Columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Stands where a text is cut.
fn mark(style: &Style) -> &'static str {
    if style.unicode { "…" } else { "~" }
}

/// A text cut to `limit` columns, with a mark where it is cut.
pub(crate) fn cut(text: &str, limit: usize, style: &Style) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mark = mark(style);
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

/// The longest beginning of a text that ends at one of `ends`, fits `limit` columns and is `whole`; `None` where it fills less than
/// half of them, because it says too little then.
fn beginning<'a>(text: &'a str, limit: usize, ends: &[&str], whole: impl Fn(&str) -> bool) -> Option<&'a str> {
    // No character takes less than a column, and no end more than two.
    let reach = text.char_indices().nth(limit + 2).map_or(text.len(), |(at, _)| at);
    let text = &text[..reach];
    let at_ends = text.char_indices().rev().filter(|(at, _)| ends.iter().any(|end| text[*at..].starts_with(*end)));
    let mut beginnings = at_ends.map(|(at, _)| text[..at].trim_end_matches(' '));
    beginnings.find(|beginning| {
        let columns = width(beginning);
        columns > 0 && columns <= limit && columns * 2 >= limit && whole(beginning)
    })
}

/// A text cut to `limit` columns between two words, with a mark; within a word only where that is longer than half of the room.
pub(crate) fn cut_at_word(text: &str, limit: usize, style: &Style) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mark = mark(style);
    match beginning(text, limit.saturating_sub(width(mark)), &[" "], |_| true) {
        Some(beginning) => format!("{beginning}{mark}"),
        None => cut(text, limit, style),
    }
}

/// A text without as many of its last clauses as `limit` columns ask for, with a mark; cut between words where no clause ends in time.
pub(crate) fn shorten(text: &str, limit: usize, style: &Style) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let is_closed = |clauses: &str| clauses.matches('(').count() == clauses.matches(')').count();
    let mark = mark(style);
    let clauses = beginning(text, limit.saturating_sub(width(mark)), &[", ", "; ", ": "], is_closed);
    clauses.map_or_else(|| cut_at_word(text, limit, style), |clauses| format!("{clauses}{mark}"))
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
/// that is longer stays whole; one that only a later line has room for leaves the first empty.
pub(crate) fn fold(text: &str, first: usize, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let room = if lines.len() == 1 { first } else { columns };
        match lines.last_mut() {
            Some(line) if line.is_empty() && (width(word) <= room || width(word) > columns) => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks a text into lines of at most the style's columns; what remains after `limit` lines is cut between words, with a mark: a
/// sentence about a sham must not go missing unseen.
pub(crate) fn wrap(text: &str, limit: usize, style: &Style) -> Vec<String> {
    let mut lines = fold(text, style.columns, style.columns);
    if lines.len() > limit && limit > 0 {
        let rest = lines.split_off(limit - 1);
        lines.push(rest.join(" "));
    }
    lines.iter().map(|line| cut_at_word(line, style.columns, style)).collect()
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
            let fits = width(text) <= room;
            let text = cut_at_word(text, room, style);
            // Nothing stands behind a mark.
            room = if fits { room - width(&text) } else { 0 };
            match paint.code().filter(|_| style.colour && !text.is_empty()) {
                Some(code) => printed.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
                None => printed.push_str(&text),
            }
        }
        printed.trim_end_matches(' ').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_take_one_column_and_ideographs_two() {
        assert_eq!((width("Bär ≤ µs"), width("日本.txt")), (8, 8));
        let drawn = "─│├┤●•…−–·×µ▁▂▃▄▅▆▇█";
        assert_eq!(width(drawn), drawn.chars().count());
    }

    #[test]
    fn accents_without_letters_are_cut_too() {
        let accents = "\u{301}".repeat(1000);
        let kept = cut(&accents, 10, &Style { unicode: true, ..Style::PLAIN });
        assert_eq!(kept, format!("{}…", "\u{301}".repeat(9)));
        assert_eq!(cut("日本語", 4, &Style::PLAIN), "日~");
    }

    #[test]
    fn a_text_loses_whole_clauses_or_else_whole_words() {
        let title =
            "frame-buffer maps 1.32 MiB anew in copy_frame, 120 times, and gives it back: 48.6 % of its CPU time";
        for (text, limit, expected) in [
            (title, 60, "frame-buffer maps 1.32 MiB anew in copy_frame, 120 times~"),
            ("change the source: where the process starts", 22, "change the source~"),
            ("waits for files (its own, and others) and for children", 30, "waits for files (its own, and~"),
            ("its launches take some 9 min", 20, "its launches take~"),
            ("a: its launches take some 9 min", 23, "a: its launches take~"),
            ("/usr/lib/chromium/chromium", 10, "/usr/lib/~"),
            ("short", 5, "short"),
        ] {
            assert_eq!(shorten(text, limit, &Style::PLAIN), expected);
        }
    }

    #[test]
    fn a_word_without_room_behind_a_prefix_starts_the_next_line() {
        assert_eq!(fold("copy_frame is slow", 5, 20), ["", "copy_frame is slow"]);
        assert_eq!(fold("a_very_long_name is slow", 5, 10), ["a_very_long_name", "is slow"]);
    }
}
