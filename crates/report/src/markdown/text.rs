//! Text of others in GitHub-flavoured Markdown, and tables that hold it.
//!
//! Owns what stays literal. A name is a code span, in which nothing is markup, mention, reference, link or formula; what could end
//! it, and what a reader would not see, is written as `\u{7c}`. Sentences that hold names are escaped character by character.

use slowpath_tables::is_dangerous;
use std::fmt::Write;

/// Characters of a name or sentence that are shown; what follows is three dots.
const LONGEST: usize = 300;

/// A name as a code span.
pub fn code(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('`');
    let shown: Vec<char> = name.chars().take(LONGEST + 1).collect();
    let last = shown.len().saturating_sub(1);
    for (at, &c) in shown.iter().take(LONGEST).enumerate() {
        // An escape that stands in the name itself must not look like one of these.
        let like_escape = c == '\\' && shown[at + 1..].starts_with(&['u', '{']);
        // A space at the ends is what Markdown takes away.
        let at_end = c == ' ' && (at == 0 || at == last);
        if matches!(c, '`' | '|') || like_escape || at_end || is_dangerous(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    if shown.len() > LONGEST {
        out.push('…');
    }
    if shown.is_empty() {
        out.push_str("[unnamed]");
    }
    out.push('`');
    out
}

/// A sentence that may hold names: no markup, no formula, and nobody and nothing is mentioned by it.
pub fn sentence(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        if at >= 4 * LONGEST {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\t' => out.push(' '),
            c if is_dangerous(c) => {
                let _ = write!(out, "&#92;u{{{:x}}}", u32::from(c));
            }
            // Entities: a backslash before them is read in two ways inside of tables.
            '|' | '\\' | '&' | '$' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' => out.extend(['\\', c]),
            // Mentions, references and addresses are looked for in the text as it is shown: a space without width ends them.
            '@' | '#' => {
                let _ = write!(out, "{c}&#8203;");
            }
            ':' if chars.peek().is_some_and(|(_, next)| !next.is_whitespace()) => out.push_str(":&#8203;"),
            '.' if ends_with_www(&out) => out.push_str("&#8203;."),
            '-' if ends_with_gh(&out) => out.push_str("-&#8203;"),
            c => out.push(c),
        }
    }
    out
}

fn ends_with_www(text: &str) -> bool {
    text.len() >= 3 && text.as_bytes()[text.len() - 3..].eq_ignore_ascii_case(b"www")
}

fn ends_with_gh(text: &str) -> bool {
    text.len() >= 2 && text.as_bytes()[text.len() - 2..].eq_ignore_ascii_case(b"gh")
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Words, to the left.
    Words(&'static str),
    /// Figures, to the right.
    Figures(&'static str),
}

/// A table under way, whose cells are Markdown already: of [`code`], of [`sentence`], or figures.
#[derive(Debug)]
pub struct Table {
    text: String,
    columns: usize,
    rows: usize,
}

impl Table {
    /// One without rows.
    pub fn new(columns: &[Column]) -> Self {
        let mut text = String::from("|");
        for Column::Words(head) | Column::Figures(head) in columns {
            let _ = write!(text, " {head} |");
        }
        text.push_str("\n|");
        for column in columns {
            text.push_str(if matches!(column, Column::Words(_)) { "---|" } else { "---:|" });
        }
        text.push('\n');
        Self { text, columns: columns.len(), rows: 0 }
    }

    /// Adds a row; cells that are missing are empty.
    pub fn row(&mut self, cells: &[String]) {
        self.text.push('|');
        for at in 0..self.columns {
            let _ = write!(self.text, " {} |", cells.get(at).map_or("", String::as_str));
        }
        self.text.push('\n');
        self.rows += 1;
    }

    /// The table below a heading; nothing where it has no row.
    pub fn under(self, heading: &str) -> String {
        if self.rows == 0 { String::new() } else { format!("\n### {heading}\n\n{}", self.text) }
    }
}

/// Items of a list below a heading, each [`sentence`]s; nothing where there is none.
pub fn list(heading: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("- {item}\n")).collect();
    format!("\n### {heading}\n\n{items}")
}
