//! What `slowpath compare --json` prints, and what is compared.

use crate::metrics::{Measure, RecordedMetrics};
use crate::time::ledger::Category;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Losses, Quantity, Unavailable};

/// Value of [`RecordingComparison::schema`].
pub const COMPARE_SCHEMA: &str = "slowpath-compare/1";

/// What `slowpath compare --json` prints: what changed between two sets of recordings. Units of figures are those of
/// one recording, or with `per` of `second` those a second: ms, bytes and counts each second.
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

/// What figures are those of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// One recording.
    Recording,
    /// One second of it.
    Second,
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
