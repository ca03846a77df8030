//! The blocks of a trial: how many at most, when they end, and what is said of that.

use crate::case::Case;
use crate::time_limit::{TimeLimit, Too};
use slowpath_experiment::Level;
use slowpath_verify::until_decided::judged;
use slowpath_verify::{Arm, ArmResult, Metric, UntilDecided};
use std::time::Duration;

/// Blocks at most where none are asked for.
const MOST: u32 = 15;

/// The plan of a trial, made before its first launch.
pub struct Blocks<'a> {
    arms: Vec<Arm>,
    /// As many as there would be with enough time.
    wanted: usize,
    planned: usize,
    rule: UntilDecided,
    limit: &'a TimeLimit,
}

/// How a trial ended.
pub struct Ended {
    /// Level of its intervals.
    pub level: Level,
    /// Level with which all of them hold together.
    pub whole: Level,
    /// Why it has fewer blocks than there would be with enough time, where it has.
    pub why: Option<String>,
}

impl Ended {
    /// The error that all intervals together may spend, without the digits that a level as a fraction does not hold.
    pub fn error_rate(&self) -> f64 {
        (self.whole.error() * 1e9).round() / 1e9
    }
}

/// Blocks that there is time for where one takes `block` and what comes before the first takes `before`. `whole` is the level with which
/// all intervals are to hold together.
///
/// # Errors
/// Fewer than it takes to judge `arms`.
pub fn planned<'a>(
    case: &Case<'_>,
    arms: impl Iterator<Item = &'a Arm>,
    limit: &TimeLimit,
    block: Duration,
    before: Duration,
    whole: Level,
) -> Result<usize, Too> {
    limit.blocks(wanted(case), whole.shared_by(judged(arms)), block, before)
}

fn wanted(case: &Case<'_>) -> u32 {
    case.blocks.unwrap_or(MOST)
}

impl<'a> Blocks<'a> {
    /// `planned` blocks of these arms, judged by `metric`, or fewer where no number is asked for. All intervals together hold with `whole`.
    pub fn new(
        case: &Case<'_>,
        arms: Vec<Arm>,
        planned: usize,
        metric: Metric,
        limit: &'a TimeLimit,
        whole: Level,
    ) -> Self {
        let rule = match case.blocks {
            Some(_) => UntilDecided::fixed(&arms, metric, whole),
            None => UntilDecided::new(&arms, planned, metric, whole),
        };
        Self { arms, wanted: wanted(case) as usize, planned, rule, limit }
    }

    /// Whether that suffices; asked after every block.
    pub fn enough(&self, results: &[ArmResult], blocks: usize) -> bool {
        self.limit.is_over() || self.rule.is_decided(&self.arms, results, blocks)
    }

    /// How the trial ended after so many blocks.
    pub fn ended(&self, results: &[ArmResult], blocks: usize) -> Ended {
        let (planned, wanted) = (self.planned, self.wanted);
        let is_decided = || self.rule.is_decided(&self.arms, results, blocks);
        let why = match () {
            () if blocks < planned && is_decided() => {
                Some(format!("every fix was decided after {blocks} of at most {planned} blocks of launches"))
            }
            () if blocks < planned => {
                Some(format!("the time (--max-time) was over after {blocks} of {planned} blocks of launches"))
            }
            () if planned < wanted => {
                Some(format!("the time (--max-time) sufficed for {planned} of {wanted} blocks of launches"))
            }
            () => None,
        };
        Ended { level: self.rule.level(blocks), whole: self.rule.whole(), why }
    }
}
