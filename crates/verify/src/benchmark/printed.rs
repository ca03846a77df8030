//! What `slowpath launch --json` holds: arms with all their launches, and what the comparison says of them.
//!
//! Owns names and shape; `report` shows it in other forms.

use crate::printed::Outcome;
use crate::{HostActivity, Metric};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Quantity, Unavailable, Unit};
use std::collections::BTreeMap;

/// Value of [`Benchmark::schema`].
pub const LAUNCH_SCHEMA: &str = "slowpath-launch/1";
/// Value of [`Ladder::schema`].
pub const LADDER_SCHEMA: &str = "slowpath-launch-ladder/1";

/// What `slowpath launch ladder --json` prints: what each addition to a command costs, cold and warm.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ladder {
    /// `slowpath-launch-ladder/1`.
    #[schemars(extend("const" = LADDER_SCHEMA))]
    pub schema: &'static str,
    /// Cold launches; null with `--warm`.
    pub cold: Option<Benchmark>,
    /// Warm launches; null with `--cold`, and when it was interrupted before.
    pub warm: Option<Benchmark>,
}

/// What `slowpath launch --json` prints: a launch benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Benchmark {
    /// [`LAUNCH_SCHEMA`].
    #[schemars(extend("const" = LAUNCH_SCHEMA))]
    pub schema: String,
    /// The event that ends a launch, in words.
    pub ready: String,
    /// How warm or cold the launches were, and how that is known.
    pub conditions: Vec<String>,
    /// Seed of the order of the launches and of the size of their environment.
    pub seed: u64,
    /// Blocks that were run; each holds one launch of every arm.
    pub blocks: u32,
    /// Why it ended there.
    pub ended: String,
    /// The metrics that were compared; the first leads.
    pub compared: Vec<Metric>,
    /// Unit of every metric.
    pub units: BTreeMap<Metric, Unit>,
    /// The arms; the others are compared with the first.
    pub arms: Vec<BenchmarkArm>,
    /// One for each further arm and compared metric.
    pub comparisons: Vec<ArmComparison>,
    /// What speaks against trusting the figures, and what a reader must know to read them.
    pub notes: Vec<String>,
    /// What could not be observed or done.
    pub unavailable: Vec<Unavailable>,
}

/// An arm and its launches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchmarkArm {
    /// Name, unique in the benchmark.
    pub name: String,
    /// Command line.
    pub command: Vec<String>,
    /// The launch of each block; null where none counts.
    pub launches: Vec<Option<OneLaunch>>,
    /// Median of every metric.
    pub medians: BTreeMap<Metric, Quantity>,
    /// The quantiles that were asked for, of the metrics that were compared.
    pub quantiles: Vec<ArmQuantile>,
    /// Launches that ran and do not count.
    pub discarded: u32,
    /// Launches that did not get ready.
    pub failed: u32,
    /// Why, with counts.
    pub reasons: Vec<String>,
    /// Launches that stand out. They stay in all figures.
    pub outliers: Vec<Outlier>,
}

/// One launch that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneLaunch {
    /// Its place in its block, from 0.
    pub position: u32,
    /// Its numbers, in the units of the benchmark.
    pub measures: BTreeMap<Metric, f64>,
    /// What the rest of the machine did.
    pub around: HostActivity,
}

/// A quantile of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmQuantile {
    /// Of what.
    pub metric: Metric,
    /// Which, as a share: 0.95.
    pub quantile: f64,
    /// Its value.
    pub value: Quantity,
}

/// A launch that stands out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Its block, from 0.
    pub block: u32,
    /// Of what.
    pub metric: Metric,
    /// Its value.
    pub value: f64,
    /// Distance from the arm's median in robust standard deviations.
    pub sigmas: f64,
    /// What was unlike the other launches; empty where nothing that is observed explains it.
    pub reasons: Vec<String>,
}

/// A further arm against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmComparison {
    /// The further arm.
    pub arm: String,
    /// The first arm.
    pub against: String,
    /// By what.
    pub metric: Metric,
    /// The conclusion.
    pub outcome: Outcome,
    /// Difference of the further arm from the first; negative is less. The interval allows for the looks taken on the way
    /// and for the number of comparisons.
    pub difference: Option<Quantity>,
    /// Quotient of the further arm by the first, with the interval of the same level.
    pub ratio: Option<Quantity>,
    /// Differences of quantiles.
    pub quantiles: Vec<ArmQuantile>,
    /// The largest difference that counts as none, fixed before the first launch as a share of the first arm's median.
    pub margin: Option<Quantity>,
    /// Smallest difference that so many launches with this noise show in 80 % of benchmarks.
    pub minimum_detectable_effect: Option<Quantity>,
    /// Pairs of launches.
    pub pairs: u32,
    /// Blocks left out because a launch is missing.
    pub dropped: u32,
    /// Two-sided p-value, adjusted for the looks taken on the way and for the number of comparisons (Holm 1979); null where
    /// there is none.
    pub p: Option<f64>,
    /// Confidence level of the interval of this comparison alone.
    pub level: f64,
}
