//! What `context bisect --json` prints: which difference of two contexts makes the same command slower.
//!
//! Owns the types. Leaves filling them to [`super::from_launches`], and the answer in a sentence to `report`.

use crate::Metric;
use crate::bisection::{CounterShift, Ended, GapAnswer, Kind, LogRatio};
use crate::printed::quantity;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_context::Remedy;
use slowpath_context::factor::Known;
use slowpath_context::printed::ComparedContext;
use slowpath_experiment::Estimate;
use slowpath_tables::{Quantity, Unavailable, Unit};

/// Version of a bisection.
pub const CONTEXT_BISECT_SCHEMA: &str = "slowpath-context-bisect/1";

/// What `slowpath context bisect --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContextBisection {
    /// `slowpath-context-bisect/1`.
    #[schemars(extend("const" = CONTEXT_BISECT_SCHEMA))]
    pub schema: &'static str,
    /// The answer in a sentence.
    pub conclusion: String,
    /// The command.
    pub command: Vec<String>,
    /// The side that was called fast.
    pub fast: BisectedSide,
    /// The other.
    pub slow: BisectedSide,
    /// What was compared; less is better.
    pub metric: Metric,
    /// The difference that was to be explained.
    pub total: BisectedTotal,
    /// The reproduced contexts beside the sides as given; null where nothing was given but contexts, or nothing was to be explained.
    pub reproduction: Option<BisectedReproduction>,
    /// What makes the command slower, the largest effect first: each with an effect and a counter of its mechanism.
    pub causes: Vec<BisectedCause>,
    /// Effects whose mechanism is not shown, or of several candidates that were only tried as one: no causes.
    pub effects: Vec<BisectedCause>,
    /// Every difference that could be applied here by itself.
    pub candidates: Vec<BisectedCandidate>,
    /// Every difference that could not.
    pub remaining: Vec<RemainingDifference>,
    /// Differences that follow from others, or are of the moment.
    pub follows: Vec<RemainingDifference>,
    /// What both contexts have, unlike the launches, because it cannot be applied here.
    pub lacking: Vec<RemainingDifference>,
    /// What causes and effects leave of the reproduced difference, percent; null where it was not measured.
    pub rest: Option<Quantity>,
    /// The smallest effect that matters, percent.
    pub margin: Quantity,
    /// Why it ended.
    pub ended: BisectionEnd,
    /// Launches, those that do not count included.
    pub launches: u32,
    /// How long it took.
    pub took: Quantity,
    /// Seed of the order of the launches and of the size of their environment.
    pub seed: u64,
    /// What speaks against the figures.
    pub notes: Vec<String>,
    /// What could not be read or done.
    pub unavailable: Vec<Unavailable>,
}

/// One of the two sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BisectedSide {
    /// As it was named: a process, a file, or a wrapper; empty: without a wrapper.
    pub given: String,
    /// Its context.
    pub context: ComparedContext,
}

/// Whether there is anything to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BisectedAnswer {
    /// The slow side is slower by more than what matters.
    Slower,
    /// The difference is shown to be smaller than what matters.
    NoDifference,
    /// No difference was shown.
    NotShown,
    /// The slow side is faster.
    Faster,
}

/// The difference of the two sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BisectedTotal {
    /// What it was answered.
    pub answer: BisectedAnswer,
    /// Slow against fast, percent; 95 % interval over all looks.
    pub difference: Option<Quantity>,
    /// Median of the fast side.
    pub fast: Option<Quantity>,
    /// Median of the slow side.
    pub slow: Option<Quantity>,
    /// Pairs of launches.
    pub pairs: u32,
    /// `--max-time` with which it would probably be decided, where it was not shown; null as well where no more launches are made, whatever the
    /// time allows.
    pub enough: Option<Quantity>,
}

/// The difference of the reproduced contexts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BisectedReproduction {
    /// Everything slow that can be applied here against everything fast, percent.
    pub difference: Option<Quantity>,
    /// What it lacks of the difference as given, in the same blocks, percent.
    pub unexplained: Option<Quantity>,
    /// Whether it is a difference that matters.
    pub is_shown: bool,
    /// Which of them was not ready, and why; null where they were.
    pub failure: Option<String>,
}

/// How the members of a cause act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// By itself.
    Alone,
    /// Only when all of them are there.
    Together,
    /// Each of them suffices.
    Each,
    /// Together with something that was not found.
    OnlyWithOthers,
    /// By itself, and something that was not found hides that it is gone.
    HiddenByOthers,
}

impl From<Kind> for CauseKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Alone => Self::Alone,
            Kind::Together => Self::Together,
            Kind::Each => Self::Each,
            Kind::OnlyWithOthers => Self::OnlyWithOthers,
            Kind::HiddenByOthers => Self::HiddenByOthers,
        }
    }
}

/// Something that makes the command slower.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BisectedCause {
    /// The candidates that belong to it.
    pub names: Vec<String>,
    /// How they act.
    pub kind: CauseKind,
    /// Whether some of the names were only tried as one: which of them it is, is not known.
    pub is_bundled: bool,
    /// Added to the fast context, percent; null where it was not launched.
    pub sufficient: Option<Quantity>,
    /// What the slow context has more than without it, percent.
    pub necessary: Option<Quantity>,
    /// Counters of its mechanism that rose in the same launches.
    pub counters: Vec<BisectedCounterShift>,
    /// How it makes a command slower, in words.
    pub mechanism: String,
    /// What can be done, with its price.
    pub remedies: Vec<Remedy>,
}

/// A counter with and without a cause, in the same blocks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BisectedCounterShift {
    /// Which.
    pub metric: Metric,
    /// Median without it.
    pub without: Quantity,
    /// Median with it.
    pub with: Quantity,
    /// Paired test of no difference.
    pub p: f64,
}

impl BisectedCounterShift {
    /// Of a bisection.
    pub fn of(moved: &CounterShift) -> Self {
        let value = |value| Quantity::exact(value, moved.metric.unit());
        Self { metric: moved.metric, without: value(moved.without), with: value(moved.with), p: moved.p }
    }
}

/// What the launches say of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CandidateVerdict {
    /// It is a cause, or belongs to one.
    Cause,
    /// It changes the time; by which mechanism is not shown.
    NoMechanism,
    /// It belongs to several that change the time together; which of them is not shown.
    AmongSeveral,
    /// It changes nothing by more than what matters.
    NoEffect,
    /// No effect was shown; the interval says how large one could be.
    NotShown,
    /// Launched in a few blocks only, because others explain the difference.
    NotNeeded,
    /// The command was never ready with it.
    Failed,
    /// It was not launched by itself.
    NotTried,
}

/// A difference that can be applied here by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BisectedCandidate {
    /// Its name.
    pub name: String,
    /// The factor that it is a part of.
    pub factor: String,
    /// What it is.
    pub title: String,
    /// In the fast context.
    pub fast: String,
    /// In the slow one.
    pub slow: String,
    /// What is known of its cost.
    pub known: Known,
    /// Whether a process cannot take it back.
    pub irreversible: bool,
    /// How it makes a command slower, in words.
    pub mechanism: String,
    /// What is done in its place where it is absent.
    pub sham: String,
    /// What the launches say.
    pub verdict: CandidateVerdict,
    /// Why, where it failed.
    pub reason: Option<String>,
    /// Names of those that were only tried together with it.
    pub tried_with: Vec<String>,
    /// Added to the fast context, percent, with an interval corrected for everything that was tried; null where it was not launched.
    pub sufficient: Option<Quantity>,
    /// What the slow context has more than without it, percent.
    pub necessary: Option<Quantity>,
    /// Pairs of launches, in the direction that has more.
    pub pairs: u32,
}

/// A difference that cannot be applied here by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RemainingDifference {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// In the fast context.
    pub fast: String,
    /// In the slow one.
    pub slow: String,
    /// What is known of its cost.
    pub known: Known,
    /// Why it cannot.
    pub why: String,
}

/// Why a bisection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BisectionEnd {
    /// Everything that it looked for was decided.
    Decided,
    /// The time was over before that.
    TimeOver,
    /// The user asked to stop.
    Stopped,
    /// One of the whole contexts was not ready any more; the notes say which, and why.
    Failed,
}

impl From<Ended> for BisectionEnd {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Decided => Self::Decided,
            Ended::TimeOver => Self::TimeOver,
            Ended::Stopped => Self::Stopped,
            Ended::Failed => Self::Failed,
        }
    }
}

impl From<GapAnswer> for BisectedAnswer {
    fn from(answer: GapAnswer) -> Self {
        match answer {
            GapAnswer::Slower => Self::Slower,
            GapAnswer::NoDifference => Self::NoDifference,
            GapAnswer::NotShown => Self::NotShown,
            GapAnswer::Faster => Self::Faster,
        }
    }
}

/// A change in percent, from a logarithm of a ratio.
pub fn change_in_percent(ratio: &LogRatio) -> Quantity {
    let percent = |logarithm: f64| logarithm.exp_m1() * 100.0;
    let Estimate { value, low, high } = ratio.estimate;
    let estimate = Estimate { value: percent(value), low: low.map(percent), high: high.map(percent) };
    quantity(estimate, Unit::Percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_experiment::Level;

    #[test]
    fn a_logarithm_becomes_a_change_with_its_interval() {
        let estimate = Estimate { value: 2.0f64.ln(), low: Some(0.0), high: Some(4.0f64.ln()) };
        let change = change_in_percent(&LogRatio { estimate, pairs: 8, level: Level::P95 });
        assert!((change.value - 100.0).abs() < 1e-9);
        assert_eq!(change.low, Some(0.0));
        assert!(change.high.is_some_and(|high| (high - 300.0).abs() < 1e-9));
    }
}
