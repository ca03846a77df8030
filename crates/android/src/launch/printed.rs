//! What `slowpath android launch` prints and keeps.

use crate::startup::{ChildStart, Startup, StartupKind};
use crate::text::AmStart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_experiment::Estimate;
use slowpath_tables::Unavailable;

/// Name and version of what is printed.
pub const LAUNCH_SCHEMA: &str = "slowpath-android-launch/1";

/// What `slowpath android launch --json` prints: scripted launches of one or several packages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AndroidLaunches {
    /// `slowpath-android-launch/1`.
    #[schemars(extend("const" = LAUNCH_SCHEMA))]
    pub schema: String,
    /// When it began, RFC 3339, UTC.
    pub began: String,
    /// The device, as adb names it.
    pub serial: String,
    /// Its model, where it says it.
    pub model: Option<String>,
    /// Its release of Android.
    pub release: Option<String>,
    /// Its API level.
    pub api_level: Option<u32>,
    /// How each launch was prepared.
    pub kind: StartupKind,
    /// How the packages were compiled before; null where they were left as they were.
    pub compilation: Option<String>,
    /// Addresses that were opened in turn; empty for the main activity.
    pub urls: Vec<String>,
    /// Blocks that were asked for: each launches every package once.
    pub blocks: u32,
    /// The packages, in the order of the command line.
    pub packages: Vec<PackageLaunches>,
    /// Between the first package and each other one.
    pub differences: Vec<Difference>,
    /// All launches, in their order.
    pub launches: Vec<Launched>,
    /// What is not known.
    pub unavailable: Vec<Unavailable>,
    /// Why it ended before all blocks; null where it did not.
    pub ended: Option<String>,
}

/// The launches of one package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackageLaunches {
    /// The package.
    pub package: String,
    /// The activity that is started; null for an address.
    pub activity: Option<String>,
    /// Launches that count.
    pub launches: u32,
    /// Launches that failed.
    pub failed: u32,
    /// Launches of another kind than the one that was asked for, which do not count.
    pub other_kind: u32,
    /// What was measured.
    pub measures: Vec<Measure>,
    /// Starts of its processes, by kind.
    pub children: Vec<ChildrenOfKind>,
}

/// A measure over launches, in ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// How many launches have it.
    pub launches: u32,
    /// The median, with its interval (95 %).
    pub p50: Estimate,
    /// The 95th percentile; without an interval where there are too few launches for one.
    pub p95: Estimate,
}

/// Starts of processes of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChildrenOfKind {
    /// The kind.
    pub kind: String,
    /// How many there were.
    pub starts: u32,
    /// How many are those of isolated users.
    pub isolated: u32,
    /// What was measured, over starts: `duration_ms`, and time in phases.
    pub measures: Vec<Measure>,
}

/// What differs between packages, in ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The package.
    pub package: String,
    /// The first one, which it is compared with.
    pub baseline: String,
    /// The measure.
    pub measure: String,
    /// Blocks in which both have it.
    pub blocks: u32,
    /// The package less the first one, by pairs of one block (Hodges-Lehmann), with its interval (95 %).
    pub difference_ms: Estimate,
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Launched {
    /// Its block, from 0.
    pub block: u32,
    /// The package.
    pub package: String,
    /// The address that was opened.
    pub url: Option<String>,
    /// What `am start -W` said.
    pub reported: AmStart,
    /// The trace, in the directory of the launches; null where there is none.
    pub trace: Option<String>,
    /// What the trace shows of the launch; null where it shows none.
    pub startup: Option<Startup>,
    /// Starts of processes of the package in the trace.
    pub children: Vec<ChildStart>,
    /// Whether it counts: started, and of the kind that was asked for.
    pub counts: bool,
    /// Why it, or its trace, failed.
    pub failure: Option<String>,
    /// What would change that.
    pub remedy: Option<String>,
}
