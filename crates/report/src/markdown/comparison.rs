//! The summary of a comparison of recordings.

use super::figures::{figure, interval};
use super::sections::ROWS;
use super::text::{Column, Table, code, list, sentence};
use crate::terminal::measure_words;
use crate::{Basis, Change, ComparedRecording, FindingState, RecordingComparison};
use slowpath_analysis::metrics::Measure;
use slowpath_tables::{Losses, Quantity};

/// Functions of one measure.
const FUNCTIONS: usize = 5;

/// What changed between recordings, for a pull request.
pub fn of_comparison(comparison: &RecordingComparison) -> String {
    let command = |side: &[ComparedRecording]| side.first().map(|one| one.command.join(" ")).unwrap_or_default();
    let (before, after) = (command(&comparison.before), command(&comparison.after));
    let name = |command: &str| if command.is_empty() { "running processes".to_owned() } else { code(command) };
    let mut out = format!("## slowpath compare: {}\n\n", name(&before));
    let count = |side: &[ComparedRecording]| match side.len() {
        1 => "1 recording".to_owned(),
        more => format!("{more} recordings"),
    };
    out.push_str(&format!("{} before, {} after", count(&comparison.before), count(&comparison.after)));
    if after != before {
        out.push_str(&format!(", after of {}", name(&after)));
    }
    out.push_str(&format!(". {}.\n", capital(&sentence(&comparison.per_reason))));
    out.push_str(&totals(comparison));
    out.push_str(&findings(comparison));
    out.push_str(&functions(comparison));
    out.push_str(&losses(comparison));
    let mut gaps = Table::new(&[Column::Words("What"), Column::Words("Why"), Column::Words("What would change that")]);
    for gap in &comparison.gaps {
        gaps.row(&[sentence(&gap.what), sentence(&gap.reason), sentence(&gap.remedy)]);
    }
    out.push_str(&gaps.under("Not observed"));
    let notes: Vec<String> = comparison.notes.iter().map(|note| format!("Note: {}", sentence(note))).collect();
    out.push_str(&list("Notes", &notes));
    out
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

const CHANGED: [Column; 5] = [
    Column::Figures("Before"),
    Column::Figures("After"),
    Column::Figures("Change"),
    Column::Figures("95 % interval"),
    Column::Words("Shown"),
];

/// Before, after, change, interval, and what the interval shows.
fn cells(change: &Change, per: Basis) -> [String; 5] {
    let unit = if per == Basis::Second { "/s" } else { "" };
    let value = |quantity: &Quantity| format!("{}{unit}", figure(quantity));
    [
        value(&change.before),
        value(&change.after),
        value(&change.difference),
        interval(&change.difference),
        shown(&change.difference).to_owned(),
    ]
}

fn shown(difference: &Quantity) -> &'static str {
    match (difference.low, difference.high) {
        (Some(_), Some(high)) if high < 0.0 => "less",
        (Some(low), Some(_)) if low > 0.0 => "more",
        (Some(_), Some(_)) => "no difference shown",
        _ => "no interval",
    }
}

fn totals(comparison: &RecordingComparison) -> String {
    let columns: Vec<Column> = std::iter::once(Column::Words("Figure")).chain(CHANGED).collect();
    let mut table = Table::new(&columns);
    for one in &comparison.totals {
        // A launch has one time to ready, however long.
        let per = if one.measure == Measure::TimeToReady { Basis::Recording } else { comparison.per };
        let mut row = vec![measure_words(one.measure).trim().to_owned()];
        row.extend(cells(&one.change, per));
        table.row(&row);
    }
    table.under(match comparison.per {
        Basis::Recording => "Whole recording",
        Basis::Second => "Each second",
    })
}

fn findings(comparison: &RecordingComparison) -> String {
    use Column::{Figures, Words};
    let columns = [
        Words("Finding"),
        Words("State"),
        Figures("Cost before"),
        Figures("Cost after"),
        Figures("Change"),
        Figures("95 % interval"),
        Words("What"),
    ];
    let mut table = Table::new(&columns);
    let unit = if comparison.per == Basis::Second { "/s" } else { "" };
    let value = |quantity: &Option<Quantity>| {
        quantity.as_ref().map_or_else(|| "–".to_owned(), |quantity| format!("{}{unit}", figure(quantity)))
    };
    for one in comparison.findings.iter().take(ROWS) {
        let state = match one.state {
            FindingState::Gone => "gone",
            FindingState::New => "new",
            FindingState::Both => "on both sides",
            FindingState::Unknown => "on one side; the other could not show it",
        };
        table.row(&[
            code(&one.name),
            state.to_owned(),
            value(&one.before),
            value(&one.after),
            value(&one.difference),
            one.difference.as_ref().map(interval).unwrap_or_default(),
            sentence(&one.title),
        ]);
    }
    let mut out = table.under("Findings");
    if let Some(more) = comparison.findings.len().checked_sub(ROWS).filter(|more| *more > 0) {
        out.push_str(&format!("\n{more} more findings are left out.\n"));
    }
    out
}

fn functions(comparison: &RecordingComparison) -> String {
    let columns: Vec<Column> =
        [Column::Words("Function"), Column::Words("Figure")].into_iter().chain(CHANGED).collect();
    let mut table = Table::new(&columns);
    for measure in [Measure::SampledCpuTime, Measure::FaultTime, Measure::AllocatedBytes] {
        let of = comparison.functions.iter().filter(|one| one.measure == measure && one.change.difference.value != 0.0);
        for one in of.take(FUNCTIONS) {
            let mut row = vec![code(one.function.as_deref().unwrap_or(&one.file))];
            row.push(measure_words(measure).trim().to_owned());
            row.extend(cells(&one.change, comparison.per));
            table.row(&row);
        }
    }
    table.under("Functions that changed most")
}

fn losses(comparison: &RecordingComparison) -> String {
    let sum = |side: &[ComparedRecording]| {
        let mut all = Losses::default();
        side.iter().for_each(|one| all.merge(&one.losses));
        all
    };
    let (before, after) = (sum(&comparison.before), sum(&comparison.after));
    let mut kinds = before.clone();
    kinds.merge(&after);
    let columns = [Column::Words("Events"), Column::Figures("Lost before"), Column::Figures("Lost after")];
    let mut table = Table::new(&columns);
    for (kind, _) in kinds.0.iter().filter(|(_, lost)| **lost > 0) {
        let lost = |of: &Losses| of.0.get(kind).copied().unwrap_or(0).to_string();
        table.row(&[code(kind), lost(&before), lost(&after)]);
    }
    table.under("Lost events")
}
