//! What a comparison concluded about its arms, as it is printed.
//!
//! Owns names and shape of decisions and verdicts. Leaves concluding to `experiment` and `verify`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Quantity;
use slowpath_verify::Metric;
use slowpath_verify::printed::Outcome;

/// What follows for a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The launches show that it helps.
    Proved,
    /// The launches show that it does not, or that any gain is too small to matter.
    Withdrawn,
    /// The launches do not tell.
    NotShown,
    /// It was not launched.
    NotTried,
}

impl Decision {
    /// All.
    pub const ALL: [Self; 4] = [Self::Proved, Self::Withdrawn, Self::NotShown, Self::NotTried];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Withdrawn => "withdrawn",
            Self::NotShown => "not_shown",
            Self::NotTried => "not_tried",
        }
    }

    /// What follows from the outcome of an arm that was launched.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Helps => Self::Proved,
            Outcome::Hurts | Outcome::NoDifference => Self::Withdrawn,
            Outcome::Inconclusive | Outcome::NotTestable => Self::NotShown,
        }
    }

    /// The decision in words for a reader.
    pub fn words(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Withdrawn => "withdrawn",
            Self::NotShown => "not shown",
            Self::NotTried => "not tried",
        }
    }
}

/// What an arm changed by another metric than the one that decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricChange {
    /// The metric.
    pub metric: Metric,
    /// Change against the baseline, negative is less.
    pub change: Option<Quantity>,
    /// What this metric alone would say.
    pub outcome: Outcome,
}

/// What the comparison concluded about one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The arm.
    pub arm: String,
    /// Name of the fix, where the arm is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// What decides: the time to ready of cold launches, or the CPU time of warm ones. Null in a file of an older version: that of
    /// its launches.
    #[serde(default)]
    pub judged_by: Option<Metric>,
    /// The conclusion.
    pub outcome: Outcome,
    /// What follows, where the arm is a fix.
    #[serde(default)]
    pub decision: Option<Decision>,
    /// Change against the baseline predicted before the first treated launch; negative is faster, or less.
    pub predicted: Option<Quantity>,
    /// Change against the baseline; negative is faster, or less.
    pub measured: Option<Quantity>,
    /// Change of a fix against the sham of its kind, with an interval of the same level as that of `measured`; negative is faster,
    /// or less. Null where there is no sham of its kind, or no pair with it.
    #[serde(default)]
    pub against_sham: Option<Quantity>,
    /// Level of the intervals of `measured`, `against_sham` and `beside`, as a fraction: that of an arm that ended after so many blocks. Null
    /// where nothing was measured, and in diagnoses of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_level: Option<f64>,
    /// Smallest change that this comparison could have shown.
    pub minimum_detectable_effect: Option<Quantity>,
    /// Pairs of launches compared.
    pub pairs: u32,
    /// Pairs left out because a launch was discarded or failed.
    pub discarded: u32,
    /// Why this outcome, where the figures alone do not say it.
    pub reason: String,
    /// Changes by other metrics; they stand beside the conclusion and do not decide it.
    #[serde(default)]
    pub beside: Vec<MetricChange>,
}

/// Share of the difference between cold and warm that an arm removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapShare {
    /// The arm.
    pub arm: String,
    /// The share, a ratio: 1 is as fast as warm.
    pub share: Quantity,
    /// Blocks in which all three arms have a launch that counts: fewer than a verdict has pairs where the warm arm ended before. Null in
    /// diagnoses of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// Level of the interval of `share`, as a fraction. Null as `blocks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_level: Option<f64>,
}
