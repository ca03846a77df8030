//! What `diagnose --json` holds, and the diagnosis in its directory.
//!
//! Owns names and shape. A change of the shape changes the number in the `schema` field.

use super::hidden_by_root::HiddenByRoot;
use super::verdict::{GapShare, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::finding::Finding;
use slowpath_analysis::printed::looked_for::LookedFor;
use slowpath_analysis::printed::round_trips::ReplyPair;
use slowpath_analysis::printed::time_spent::TimeSpent;
use slowpath_fix::FixPlan;
use slowpath_tables::{Losses, Quantity, Unavailable};
use slowpath_verify::Metric;

/// Value of [`Diagnosis::schema`].
pub const DIAGNOSE_SCHEMA: &str = "slowpath-diagnose/1";

/// What `slowpath diagnose --json` prints: why a launch is slow, what was tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// [`DIAGNOSE_SCHEMA`].
    #[schemars(extend("const" = DIAGNOSE_SCHEMA))]
    pub schema: String,
    /// Whether warm launches were diagnosed; cold ones else.
    #[serde(default)]
    pub warm: bool,
    /// Command line.
    pub command: Vec<String>,
    /// Directory of the recording that explains the launch.
    pub recording: String,
    /// The launches that were compared.
    pub launch: LaunchSummary,
    /// Where nothing was launched: the processes that were recorded while they ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningSummary>,
    /// Where cold and warm launches were both diagnosed: those of the other kind, which lose less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<OtherLaunches>,
    /// Where the time of the recorded launches went, one of each kind that was diagnosed; without those of which it is not known.
    #[serde(default)]
    pub time: Vec<TimeSpent>,
    /// What the recordings were searched for, one of each kind that was diagnosed, and which cost could have gone unseen. Empty in diagnoses of
    /// an earlier version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_for: Vec<LookedFor>,
    /// Who waited for replies of other processes, the longest waits first: on the critical path of the recorded warm launch, or all of
    /// what was recorded while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_trips: Vec<ReplyPair>,
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// Of the half that follows: how many findings of its launches stand with those of the half that leads. 0 of a whole diagnosis.
    #[serde(skip)]
    pub shared_findings: usize,
    /// The fixes for the findings of warm launches, with price and undo, also those that could not be tried.
    #[serde(default)]
    pub fixes: Vec<FixPlan>,
    /// What the comparison concluded about each arm that was judged, and about each fix that could not be tried.
    pub verdicts: Vec<Verdict>,
    /// How much of the difference between a cold and a warm launch each arm removed.
    pub share_of_gap_removed: Vec<GapShare>,
    /// Where the launches ran as root: artifacts that another user may not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_by_root: Option<HiddenByRoot>,
    /// Events lost while recording, by kind.
    pub losses: Losses,
    /// What could not be observed or tried.
    pub unavailable: Vec<Unavailable>,
    /// What a reader must know to read the figures.
    pub notes: Vec<String>,
}

/// Processes that ran already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunningSummary {
    /// Their names and pids. Foreign text.
    pub processes: String,
    /// How long they were recorded.
    pub watched: Quantity,
}

/// Launches of the other kind, and what explains them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherLaunches {
    /// Whether they were warm.
    pub warm: bool,
    /// Directory of the recording that explains them.
    pub recording: String,
    /// The launches that were compared.
    pub launch: LaunchSummary,
    /// How many of the findings its recording showed.
    pub found: u32,
    /// Which they are: places in the list of all findings, from 0. Empty in diagnoses of an earlier version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_findings: Vec<u32>,
    /// Which of the others its recording showed too: places in the list of all findings, from 0. Their cost is that of the launches that
    /// lose more. Left out where there are none, and in diagnoses of an earlier version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_findings: Vec<u32>,
    /// How much of the difference between a cold and a warm launch each arm removed, where they were cold.
    pub share_of_gap_removed: Vec<GapShare>,
}

/// The launches of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchSummary {
    /// The event that ends a launch, in words.
    pub ready: String,
    /// Seed of the order of the launches.
    pub seed: u64,
    /// Blocks; each holds one launch of every arm that has not ended. An arm ends when no fix that is open is compared with it.
    pub blocks: u32,
    /// Conditions of all launches: the lab, its mount options, limits.
    pub conditions: Vec<String>,
    /// What decides the verdicts; their predicted and measured changes are of it.
    #[serde(default = "wall")]
    pub judged_by: Metric,
    /// The chance that any verdict of these launches says `helps` or `hurts` where nothing differs, at most; a ratio. 0.05 of one
    /// kind of launches; where cold and warm ones are both tried, each may spend half, so that the whole diagnosis has 0.05. Null where
    /// nothing was tried, and in diagnoses of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// Level of each interval that decides, of `measured` and `against_sham`, as a fraction: so high that those of all arms and of all looks at
    /// the launches hold together with a chance of 1 - `error_rate`. Of arms that took part in all blocks; each verdict has its own. Medians
    /// of arms have 95 % each. Null as `error_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_level: Option<f64>,
    /// The arms.
    pub arms: Vec<ArmSummary>,
}

fn wall() -> Metric {
    Metric::Wall
}

/// What an arm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArmRole {
    /// The untreated launch that the others are compared with.
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
    /// Time to ready in milliseconds, by block that the arm took part in; null for a launch that was discarded or failed.
    pub samples_ms: Vec<Option<f64>>,
    /// Median of the samples; null when no launch counts.
    pub median: Option<Quantity>,
    /// CPU time of the process tree in milliseconds, by block that the arm took part in.
    #[serde(default)]
    pub cpu_samples_ms: Vec<Option<f64>>,
    /// Its median.
    #[serde(default)]
    pub cpu: Option<Quantity>,
    /// Whether children may be missing in its CPU time and faults, because a process ignores SIGCHLD; left out where none are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_children: bool,
    /// Page faults of the process tree without I/O, median.
    #[serde(default)]
    pub minor_faults: Option<Quantity>,
    /// Largest resident memory of a process, median.
    #[serde(default)]
    pub peak_rss: Option<Quantity>,
    /// Bytes read from storage per launch, median; null when no launch counts.
    pub bytes_read: Option<Quantity>,
    /// Launches that ran and do not count (a cold one that was not cold).
    pub discarded: u32,
    /// Launches that did not get ready.
    pub failed: u32,
    /// Why launches were discarded or failed, with counts.
    pub discard_reasons: Vec<String>,
}
