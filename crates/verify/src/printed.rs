//! Outcomes and estimates as every command prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_experiment::{self as experiment, Estimate};
use slowpath_tables::{Quantity, Unit};

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

impl Outcome {
    /// All.
    pub const ALL: [Self; 5] = [Self::Helps, Self::Hurts, Self::NoDifference, Self::Inconclusive, Self::NotTestable];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Hurts => "hurts",
            Self::NoDifference => "no_difference",
            Self::Inconclusive => "inconclusive",
            Self::NotTestable => "not_testable",
        }
    }
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

/// An estimate in a unit.
pub fn quantity(estimate: Estimate, unit: Unit) -> Quantity {
    Quantity { value: estimate.value, low: estimate.low, high: estimate.high, unit }
}
