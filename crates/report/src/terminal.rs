//! The answer on a screen of 80x24: what makes the launch slow, what was tried, and how far to trust it.
//!
//! Owns the choice and the order of what a screen shows. Everything left out stands in the JSON and the HTML page.

mod escape;
mod figures;
mod line;
mod sections;
mod style;

pub use escape::escape_terminal;
pub use style::Style;

use crate::diagnosis::{Analysis, Diagnosis};
use line::{Line, Paint};
use sections::Section;

/// The summary of a diagnosis, with a newline after every line.
pub fn diagnosis(diagnosis: &Diagnosis, style: &Style) -> String {
    let mut sections = vec![
        sections::answer(diagnosis, style),
        sections::arms(&diagnosis.launch, style),
        sections::findings(&diagnosis.findings, style),
        sections::verdicts(diagnosis, style),
    ];
    sections.push(sections::doubts(&diagnosis.losses, &diagnosis.unavailable, &diagnosis.notes, style));
    sections.push(sections::recording(&diagnosis.recording, style));
    screen(sections, style)
}

/// The summary of the analysis of one recording, with a newline after every line.
pub fn analysis(analysis: &Analysis, style: &Style) -> String {
    let sections = vec![
        sections::recorded(analysis, style),
        sections::findings(&analysis.findings, style),
        sections::doubts(&analysis.losses, &analysis.unavailable, &[], style),
        sections::recording(&analysis.recording, style),
    ];
    screen(sections, style)
}

/// Puts sections below each other; the longest lists give up lines until everything fits.
fn screen(mut sections: Vec<Section>, style: &Style) -> String {
    sections.retain(|section| section.lines() > 0);
    let total = |sections: &[Section]| {
        sections.iter().map(Section::lines).sum::<usize>() + sections.iter().filter(|s| s.spaced).count()
    };
    while total(&sections) > style.lines {
        let Some(longest) = sections.iter_mut().filter(|s| s.items.len() > 1).max_by_key(|s| s.items.len()) else {
            break;
        };
        longest.drop_last();
    }
    let mut printed = String::new();
    for section in &sections {
        if section.spaced && !printed.is_empty() {
            printed.push('\n');
        }
        let more = section.dropped_note(style);
        for line in section.head.iter().chain(&section.items).chain(&more) {
            printed.push_str(&line.print(style));
            printed.push('\n');
        }
    }
    printed
}

impl Section {
    fn lines(&self) -> usize {
        self.head.len() + self.items.len() + usize::from(self.dropped > 0)
    }

    fn drop_last(&mut self) {
        self.items.pop();
        self.dropped += 1;
        // The note about what is left out takes a line itself.
        if self.dropped == 1 && self.items.len() > 1 {
            self.items.pop();
            self.dropped += 1;
        }
    }

    fn dropped_note(&self, style: &Style) -> Option<Line> {
        (self.dropped > 0)
            .then(|| Line::of(Paint::Quiet, &format!("  {} more {} in the report", self.dropped, self.what), style))
    }
}
