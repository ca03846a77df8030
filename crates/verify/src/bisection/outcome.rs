//! What a bisection found.

use super::choice::Group;
use super::log_ratio::LogRatio;
use slowpath_experiment::Estimate;
use slowpath_launch::Metric;
use std::time::Duration;

/// Why a bisection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything that it looked for was decided.
    Decided,
    /// The time was over before that.
    TimeOver,
    /// The user asked to stop.
    Stopped,
    /// One of the whole contexts was not ready any more ([`Bisection::failure`]).
    Failed,
}

/// Whether there is anything to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapAnswer {
    /// The slow side is slower by more than what matters.
    Slower,
    /// The difference is shown to be smaller than what matters.
    NoDifference,
    /// No difference was shown; the interval says how large one could be.
    NotShown,
    /// It is the reverse: the one that was called slow is faster.
    Faster,
}

/// The difference that is to be explained.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineGap {
    /// What it was answered.
    pub answer: GapAnswer,
    /// Slow over fast; `None` without a pair.
    pub ratio: Option<LogRatio>,
    /// Median of the fast side, in the unit of the metric.
    pub fast: Option<Estimate>,
    /// Median of the slow side.
    pub slow: Option<Estimate>,
    /// All of the time ([`super::Settings::max_time`]) with which it would probably be decided, where it is not; `None` as well where no more launches
    /// are made, whatever the time allows.
    pub enough: Option<Duration>,
}

/// The difference between the reproduced contexts, beside that of the two sides as given.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproduction {
    /// All candidates slow over all fast.
    pub ratio: Option<LogRatio>,
    /// What the reproduction lacks of the difference as given, in the same blocks.
    pub rest: Option<LogRatio>,
    /// Whether it is a difference that matters.
    pub is_shown: bool,
    /// Which of them was never ready, and why, in words.
    pub failure: Option<String>,
}

/// What the launches say of a candidate, or of several that were only tried together.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateEffect {
    /// The candidates.
    pub group: Group,
    /// Everything fast and only these slow, over everything fast.
    pub sufficient: Direction,
    /// Everything slow, over everything slow and only these fast.
    pub necessary: Direction,
}

impl CandidateEffect {
    /// Whether either direction shows an effect.
    pub fn is_shown(&self) -> bool {
        self.sufficient.state == State::Shown || self.necessary.state == State::Shown
    }
}

/// One direction in which a candidate was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// The effect; `None` without a pair.
    pub ratio: Option<LogRatio>,
    /// What it means.
    pub state: State,
}

impl Direction {
    /// The estimate of the effect; 0 where there is none.
    pub fn value(&self) -> f64 {
        self.ratio.map_or(0.0, |ratio| ratio.estimate.value)
    }
}

/// What the launches of one direction say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Too few launches to say anything.
    Open,
    /// An effect above what matters, corrected for everything that was tried.
    Shown,
    /// Shown to be below what matters.
    Small,
    /// Launched in a few blocks, and not looked at further because others explain the difference.
    NotNeeded,
    /// The command was never ready with it.
    Failed(String),
}

/// How the members of a cause act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By itself.
    Alone,
    /// Only when all of them are there: taking one away ends it.
    Together,
    /// Each of them suffices: taking one away does not help as long as another is there.
    Each,
    /// Taking it away helps, adding it alone does nothing: it acts together with something that was not found.
    OnlyWithOthers,
    /// Adding it alone makes the command slower, taking it away does not help: something else that was not found hides it.
    HiddenByOthers,
}

/// Something that makes the command slower.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// The candidates that belong to it.
    pub members: Group,
    /// How they act.
    pub kind: Kind,
    /// Whether some of them were only tried as one: which of those it is, is not known.
    pub is_bundled: bool,
    /// Everything fast and only these slow, over everything fast.
    pub sufficient: Option<LogRatio>,
    /// Everything slow, over everything slow and only these fast.
    pub necessary: Option<LogRatio>,
    /// Counters of its mechanism that rose in the same launches.
    pub counters: Vec<CounterShift>,
}

impl Cause {
    /// Whether it is a single candidate or an interaction of single ones, and its mechanism was seen: only that is named as a cause.
    pub fn is_named(&self) -> bool {
        !self.is_bundled && !self.counters.is_empty()
    }
}

/// A counter that differs between the launches with and without a cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterShift {
    /// Which.
    pub metric: Metric,
    /// Its median without the cause.
    pub without: f64,
    /// Its median with it, in the same blocks.
    pub with: f64,
    /// Paired test of no difference.
    pub p: f64,
}

/// The result of a bisection.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisection {
    /// The difference that was to be explained.
    pub gap: BaselineGap,
    /// The reproduced contexts beside the sides as given; `None` where nothing was given but the contexts, or nothing was to be explained.
    pub reproduction: Option<Reproduction>,
    /// What was tried one at a time, in both directions; those that were tried together and then apart, apart.
    pub effects: Vec<CandidateEffect>,
    /// What was found, the largest effect first.
    pub causes: Vec<Cause>,
    /// Everything slow, over everything fast but for what was found: what is not explained of the reproduced difference.
    pub rest: Option<LogRatio>,
    /// The smallest effect that matters, as a logarithm; fixed by the gap before any candidate was tried.
    pub margin: f64,
    /// Which of the whole contexts was not ready any more, and why, in words; nothing could be compared with it from here on.
    pub failure: Option<String>,
    /// Why it ended.
    pub ended: Ended,
    /// Launches, those that do not count included.
    pub launches: usize,
    /// How long it took.
    pub took: Duration,
}
