//! What `analyze --json`, `diagnose --json` and the HTML page hold.
//!
//! Owns names and shape. `schema.rs` publishes them; a change of the shape changes the number in the `schema` field.

use crate::critical_path::CriticalPath;
use crate::ledger::Ledger;
use crate::shares::Shares;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::finding::Finding;
use slowpath_analysis::io_map::IoMap;
use slowpath_experiment as experiment;
use slowpath_tables::{Losses, Quantity, Unavailable, Unit};

/// Value of [`Analysis::schema`].
pub const ANALYZE_SCHEMA: &str = "slowpath-analyze/1";
/// Value of [`Diagnosis::schema`].
pub const DIAGNOSE_SCHEMA: &str = "slowpath-diagnose/1";
/// Value of [`ReportData::schema`].
pub const REPORT_SCHEMA: &str = "slowpath-report/1";

/// What one recording shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// [`ANALYZE_SCHEMA`].
    #[schemars(extend("const" = ANALYZE_SCHEMA))]
    pub schema: String,
    /// The recorded command line; empty when running processes were recorded.
    pub command: Vec<String>,
    /// Directory of the recording.
    pub recording: String,
    /// From release of exec to ready; null where the recording holds no such launch.
    pub time_to_ready: Option<Quantity>,
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// What each process and function has of the recording, and the recording of the machine.
    pub shares: Shares,
    /// Where the time of every thread went; null where that was not recorded (`unavailable` says why).
    #[serde(default)]
    pub ledger: Option<Ledger>,
    /// What the end of the recorded launch waited for, back to its begin; null without a launch, and where waits were not recorded.
    #[serde(default)]
    pub critical_path: Option<CriticalPath>,
    /// Events lost, by kind.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
}

/// Why a launch is slow, what was tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// [`DIAGNOSE_SCHEMA`].
    #[schemars(extend("const" = DIAGNOSE_SCHEMA))]
    pub schema: String,
    /// Command line.
    pub command: Vec<String>,
    /// Directory of the recording that explains the launch.
    pub recording: String,
    /// The launches that were compared.
    pub launch: LaunchSummary,
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// What the comparison concluded about each arm that was judged.
    pub verdicts: Vec<Verdict>,
    /// How much of the difference between a cold and a warm launch each arm removed.
    pub share_of_gap_removed: Vec<GapShare>,
    /// Events lost while recording, by kind.
    pub losses: Losses,
    /// What could not be observed or tried.
    pub unavailable: Vec<Unavailable>,
    /// What a reader must know to read the figures.
    pub notes: Vec<String>,
}

/// The launches of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchSummary {
    /// The event that ends a launch, in words.
    pub ready: String,
    /// Seed of the order of the launches.
    pub seed: u64,
    /// Blocks; each holds one launch of every arm.
    pub blocks: u32,
    /// Conditions of all launches: the lab, its mount options, limits.
    pub conditions: Vec<String>,
    /// The arms.
    pub arms: Vec<ArmSummary>,
}

/// What an arm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArmRole {
    /// The untreated cold launch that the others are compared with.
    Baseline,
    /// A fix.
    Fix,
    /// A control: what surrounds the fix, without the fix.
    Sham,
    /// What another tool or the kernel offers for the same end.
    Rival,
    /// A launch with everything in memory: the bound of what reading less can gain.
    Warm,
}

/// The launches of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmSummary {
    /// Name, unique in the comparison.
    pub name: String,
    /// One line for the reader.
    pub title: String,
    /// What it is for.
    pub role: ArmRole,
    /// Time to ready in milliseconds, by block; null for a launch that was discarded or failed.
    pub samples_ms: Vec<Option<f64>>,
    /// Median of the samples; null when no launch counts.
    pub median: Option<Quantity>,
    /// Bytes read from storage per launch, median; null when no launch counts.
    pub bytes_read: Option<Quantity>,
    /// Launches that ran and do not count (a cold one that was not cold).
    pub discarded: u32,
    /// Launches that did not get ready.
    pub failed: u32,
    /// Why launches were discarded or failed, with counts.
    pub discard_reasons: Vec<String>,
}

/// What an experiment concluded about an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Faster than the baseline.
    Helps,
    /// Slower than the baseline.
    Hurts,
    /// Any difference is too small to matter.
    NoDifference,
    /// The launches do not tell.
    Inconclusive,
    /// It could not be tried, or too seldom.
    NotTestable,
}

impl From<experiment::Outcome> for Outcome {
    fn from(outcome: experiment::Outcome) -> Self {
        match outcome {
            experiment::Outcome::Helps => Self::Helps,
            experiment::Outcome::Hurts => Self::Hurts,
            experiment::Outcome::NoDifference => Self::NoDifference,
            experiment::Outcome::Inconclusive => Self::Inconclusive,
            experiment::Outcome::NotTestable => Self::NotTestable,
        }
    }
}

/// An estimate in a unit.
pub fn quantity(estimate: experiment::Estimate, unit: Unit) -> Quantity {
    Quantity { value: estimate.value, low: estimate.low, high: estimate.high, unit }
}

impl Outcome {
    /// The outcome in words for a reader.
    pub fn words(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Hurts => "hurts",
            Self::NoDifference => "no difference",
            Self::Inconclusive => "inconclusive",
            Self::NotTestable => "not testable",
        }
    }
}

/// What the comparison concluded about one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The arm.
    pub arm: String,
    /// Name of the fix, where the arm is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The conclusion.
    pub outcome: Outcome,
    /// Change against the baseline predicted before the first treated launch; negative is faster.
    pub predicted: Option<Quantity>,
    /// Change against the baseline; negative is faster.
    pub measured: Option<Quantity>,
    /// Smallest change that this comparison could have shown.
    pub minimum_detectable_effect: Option<Quantity>,
    /// Pairs of launches compared.
    pub pairs: u32,
    /// Pairs left out because a launch was discarded or failed.
    pub discarded: u32,
    /// Why this outcome, where the figures alone do not say it.
    pub reason: String,
}

/// Share of the difference between cold and warm that an arm removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapShare {
    /// The arm.
    pub arm: String,
    /// The share, a ratio: 1 is as fast as warm.
    pub share: Quantity,
}

/// The machine, as the page names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Processors.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// The storage the launch read from, in words.
    pub storage: String,
}

/// Everything the HTML page shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportData {
    /// [`REPORT_SCHEMA`].
    #[schemars(extend("const" = REPORT_SCHEMA))]
    pub schema: String,
    /// The command line, as one string.
    pub title: String,
    /// When the report was made, RFC 3339.
    pub generated: String,
    /// The machine.
    pub machine: Machine,
    /// Null for a report on one recording.
    pub diagnosis: Option<Diagnosis>,
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// Events lost, by kind.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
    /// Reads from storage; null where none were recorded.
    pub io_map: Option<IoMap>,
    /// Reserved for the time ledger: always null in this version.
    #[schemars(extend("const" = serde_json::Value::Null))]
    pub ledger: Option<serde_json::Value>,
}
