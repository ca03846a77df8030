//! Two sets of recordings of one workload, laid beside each other: what changed, by finding, function, program and row of the time
//! ledger.
//!
//! Owns the JSON of `slowpath compare` and what is compared with what: figures of the same name, a figure that is not there
//! counting as zero where it was recorded ([`changes`]), and as a gap where it was not ([`gaps`]). Leaves a recording's own figures
//! to `analysis::metrics`, intervals to `experiment::rank_sum`, and comparing arms of launches, which are paired, to
//! `verify`. Whether a change is good news, and what caused it, is not said.

mod changes;
mod gaps;
mod scale;

pub(crate) use gaps::lacking;
pub use scale::Basis;
pub(crate) use scale::factor;

use crate::recording_comparison::changes::Sides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::metrics::{Measure, RecordedMetrics};
use slowpath_analysis::time::ledger::Category;
use slowpath_experiment::{Level, rank_sum};
use slowpath_tables::{Losses, Quantity, Unavailable, Unit};

/// Value of [`RecordingComparison::schema`].
pub const COMPARE_SCHEMA: &str = "slowpath-compare/1";

/// What changed between two sets of recordings. Units of figures are those of one recording, or with `per` of `second` those
/// a second: ms, bytes and counts each second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingComparison {
    /// [`COMPARE_SCHEMA`].
    #[schemars(extend("const" = COMPARE_SCHEMA))]
    pub schema: String,
    /// The recordings before the change.
    pub before: Vec<ComparedRecording>,
    /// Those after it.
    pub after: Vec<ComparedRecording>,
    /// Whether figures are those of a recording or of a second. Times to ready are those of a launch in either case.
    pub per: Basis,
    /// Why.
    pub per_reason: String,
    /// Whether differences have a 95 % interval; if not, there are too few recordings.
    pub has_intervals: bool,
    /// Figures of whole recordings, in a fixed order.
    pub totals: Vec<TotalChange>,
    /// Findings of either side, those with the largest cost first.
    pub findings: Vec<FindingChange>,
    /// Functions, by measure the largest differences first; `functions_left_out` counts the others.
    pub functions: Vec<FunctionChange>,
    /// Functions with smaller differences that are not listed.
    pub functions_left_out: u64,
    /// All processes of a program together, by measure the largest differences first.
    pub programs: Vec<ProgramChange>,
    /// Rows of the time ledger, all threads of a program together, and of all programs; the largest differences first.
    pub ledger: Vec<LedgerChange>,
    /// What cannot be compared, or only with a doubt, and why.
    pub gaps: Vec<Unavailable>,
    /// What a reader must know to read the figures.
    pub notes: Vec<String>,
}

/// One recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRecording {
    /// Its directory.
    pub recording: String,
    /// Its command line, or what was recorded.
    pub command: Vec<String>,
    /// From release to ready for a launch that got ready, else from begin to end of recording.
    pub length: Quantity,
    /// Events lost, by kind.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
}

/// A figure before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Median of the recordings before; with its own 95 % interval from 6 recordings on.
    pub before: Quantity,
    /// The same after.
    pub after: Quantity,
    /// After minus before: with several recordings the median of all differences between one after and one before, with the
    /// interval of the rank-sum test where there are enough.
    pub difference: Quantity,
    /// After over before, from the same inference on logarithms; null where a value is zero or negative.
    pub ratio: Option<Quantity>,
}

/// A figure of the whole recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TotalChange {
    /// What it counts.
    pub measure: Measure,
    /// The figure.
    pub change: Change,
}

/// A figure of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionChange {
    /// Its name; null for all of `file` together whose names are not known. What the kernel, the C and C++ libraries and allocators
    /// did for it is its own; what other functions did that it called is theirs.
    pub function: Option<String>,
    /// Name of its file, or in brackets why there is none.
    pub file: String,
    /// What the figure counts.
    pub measure: Measure,
    /// The figure.
    pub change: Change,
}

/// A figure of all processes of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramChange {
    /// Its name, with the role of a process where it starts its own image in several; in brackets for the kernel's own threads.
    pub program: String,
    /// What the figure counts.
    pub measure: Measure,
    /// The figure.
    pub change: Change,
}

/// A row of the time ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerChange {
    /// The program; null for all together.
    pub program: Option<String>,
    /// The row; null for what is unexplained.
    pub category: Option<Category>,
    /// Time of all threads together.
    pub change: Change,
}

/// Whether a finding is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// In no recording after, though they could show it.
    Gone,
    /// In no recording before, though they could show it.
    New,
    /// In recordings of both sides.
    Both,
    /// On one side only, and the other lacks something that was recorded there.
    Unknown,
}

/// A finding on either side. One that is not found costs less than its thresholds, which is not nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingChange {
    /// Name of the bad pattern.
    pub name: String,
    /// The name that it had in the version before; left out where it had no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_name: Option<String>,
    /// Program.
    pub program: String,
    /// Function, where the finding names one.
    pub function: Option<String>,
    /// Its title in the first recording that has it.
    pub title: String,
    /// Whether it is there.
    pub state: FindingState,
    /// Recordings before that have it.
    pub found_before: u64,
    /// Recordings after that have it.
    pub found_after: u64,
    /// Its cost before, median of the recordings that have it; null for none.
    pub before: Option<Quantity>,
    /// Its cost after.
    pub after: Option<Quantity>,
    /// After minus before, where all recordings have it.
    pub difference: Option<Quantity>,
}

/// A recording and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its directory.
    pub recording: String,
    /// What it cost.
    pub costs: RecordedMetrics,
}

impl Change {
    /// Compares values of independent recordings; `None` where a side has none.
    fn of(before: &[f64], after: &[f64], unit: Unit) -> Option<Self> {
        let found = rank_sum::independent(before, after, Level::P95)?;
        let quantity = |estimate| crate::quantity(estimate, unit);
        Some(Self {
            before: quantity(found.before),
            after: quantity(found.after),
            difference: quantity(found.difference),
            ratio: found.ratio.map(|ratio| crate::quantity(ratio, Unit::Ratio)),
        })
    }
}

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
