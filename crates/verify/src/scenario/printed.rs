//! What `slowpath launch scenario --json` holds: rounds of visits by browsers, and what the comparison says of them.
//!
//! A round is the unit of every interval: visits of one browser share its state and are not independent. So each round gives
//! one number of each measure (the 95 % quantile of its visits, say), and those are what is compared by pairs.

use crate::HostActivity;
use crate::children::ChildLaunches;
use crate::printed::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Losses, Milestone, Quantity, Unavailable, Unit};
use std::collections::BTreeMap;

/// Value of [`Scenario::schema`].
pub const SCENARIO_SCHEMA: &str = "slowpath-scenario/1";

/// What `slowpath launch scenario --json` prints: pages visited by several browsers, or in several ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// [`SCENARIO_SCHEMA`].
    #[schemars(extend("const" = SCENARIO_SCHEMA))]
    pub schema: String,
    /// How the rounds were made.
    pub conditions: Vec<String>,
    /// Seed of all orders.
    pub seed: u64,
    /// Rounds; in each, every arm visits every page once.
    pub rounds: u32,
    /// Why it ended there.
    pub ended: String,
    /// Names of the pages.
    pub pages: Vec<String>,
    /// What is shown of a round, in the order in which it is shown.
    pub measures: Vec<ScenarioMeasure>,
    /// The arms; the others are compared with the first.
    pub arms: Vec<ScenarioArm>,
    /// One for each further arm and measure.
    pub comparisons: Vec<ScenarioComparison>,
    /// Events that were lost while child launches were recorded.
    pub losses: Losses,
    /// What speaks against trusting the figures.
    pub notes: Vec<String>,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
}

/// A number that a round gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioMeasure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// What it is.
    pub meaning: String,
}

/// A browser and its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioArm {
    /// Name, unique in the scenario.
    pub name: String,
    /// Command line.
    pub command: Vec<String>,
    /// The rounds; null where none counts.
    pub rounds: Vec<Option<ScenarioRound>>,
    /// Median over the rounds of every measure, by name.
    pub medians: BTreeMap<String, Quantity>,
    /// Of each page, the median over the rounds of its milestones, ms since the navigation began.
    pub pages: Vec<BTreeMap<Milestone, Quantity>>,
    /// Launches of child processes by kind, a run a round; null where they could not be recorded.
    pub children: Option<ChildLaunches>,
    /// Rounds that failed.
    pub failed: u32,
    /// Why, with counts.
    pub reasons: Vec<String>,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioRound {
    /// Its place among the arms of the round, from 0.
    pub position: u32,
    /// The visits, in the order in which they were made.
    pub visits: Vec<OneVisit>,
    /// Its numbers.
    pub measures: BTreeMap<String, f64>,
    /// What the rest of the machine did.
    pub around: HostActivity,
}

/// One visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneVisit {
    /// Number of the page, from 0.
    pub page: u32,
    /// Milestones, ms since the navigation began.
    pub milestones: BTreeMap<Milestone, f64>,
    /// Child processes that were forked during the visit; null where they could not be recorded.
    pub children: Option<u32>,
}

/// A further arm against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioComparison {
    /// The further arm.
    pub arm: String,
    /// The first arm.
    pub against: String,
    /// Name of the measure.
    pub measure: String,
    /// The conclusion.
    pub outcome: Outcome,
    /// Difference of the further arm from the first; negative is less. The interval allows for the number of comparisons.
    pub difference: Option<Quantity>,
    /// Quotient of the further arm by the first, with the interval of the same level.
    pub ratio: Option<Quantity>,
    /// The largest difference that counts as none.
    pub margin: Option<Quantity>,
    /// Smallest difference that so many rounds with this noise show in 80 % of scenarios.
    pub minimum_detectable_effect: Option<Quantity>,
    /// Pairs of rounds.
    pub pairs: u32,
    /// Two-sided p-value, adjusted for the number of comparisons (Holm 1979); null where there is none.
    pub p: Option<f64>,
    /// Confidence level of the interval of this comparison alone.
    pub level: f64,
}
