//! Two sets of recordings of one workload, laid beside each other: what changed, by finding, function, program and row of the time
//! ledger.
//!
//! Owns the JSON of `slowpath compare` ([`RecordingComparison`]) and what is compared with what: figures of the same name, a figure that
//! is not there counting as zero where it was recorded (`changes`), and as a gap where it was not (`gaps`). Leaves a recording's own
//! figures to [`crate::metrics`], intervals to `experiment::rank_sum`, and comparing arms of launches, which are paired, to `verify`.
//! Whether a change is good news, and what caused it, is not said.

mod changes;
mod gaps;
mod printed;
mod scale;

pub use gaps::lacking;
pub use printed::{
    Basis, COMPARE_SCHEMA, Change, Compared, ComparedRecording, FindingChange, FindingState, FunctionChange,
    LedgerChange, ProgramChange, RecordingComparison, TotalChange,
};
pub use scale::factor;

use changes::Sides;
use slowpath_experiment::{Level, rank_sum};
use slowpath_tables::{Quantity, Unit};

/// Compares two sets of recordings of one workload; with `per_second` figures are those of a second, whatever was recorded.
pub fn compare_recordings(before: &[Compared], after: &[Compared], per_second: bool) -> RecordingComparison {
    let (per, per_reason) = scale::basis(before, after, per_second);
    let sides = Sides::new(before, after, per);
    let (functions, functions_left_out) = sides.functions();
    let (ledger, ledger_notes) = sides.ledger();
    RecordingComparison {
        schema: COMPARE_SCHEMA.to_owned(),
        before: before.iter().map(shown).collect(),
        after: after.iter().map(shown).collect(),
        per,
        per_reason,
        has_intervals: rank_sum::has_interval(before.len(), after.len(), Level::P95),
        totals: sides.totals(),
        findings: sides.findings(),
        functions,
        functions_left_out,
        programs: sides.programs(),
        ledger,
        gaps: gaps::gaps(before, after),
        notes: std::iter::once(intervals(before.len(), after.len())).chain(ledger_notes).collect(),
    }
}

fn shown(one: &Compared) -> ComparedRecording {
    ComparedRecording {
        recording: one.recording.clone(),
        command: one.costs.command.clone(),
        length: Quantity::exact(one.costs.length.as_ms() / 1000.0, Unit::S),
        losses: one.costs.losses.clone(),
        unavailable: one.costs.unavailable.clone(),
    }
}

/// What the differences of so many recordings say.
fn intervals(before: usize, after: usize) -> String {
    if (before, after) == (1, 1) {
        return "one recording each: no interval, and nothing says how much of a difference is chance".to_owned();
    }
    if !rank_sum::has_interval(before, after, Level::P95) {
        return format!(
            "{before} and {after} recordings are too few for a 95 % interval: 4 and 4 have one, or 3 and 5, or 2 and 8"
        );
    }
    "each interval is for its own row: of 20 unchanged rows, about one excludes zero".to_owned()
}
