//! The blocks of a trial: how many at most, when they end, and what is said of that.

use crate::case::Case;
use crate::time_limit::{TimeLimit, Too};
use slowpath_experiment::Level;
use slowpath_verify::until_decided::judged;
use slowpath_verify::{Arm, ArmResult, Metric, NextBlock, UntilDecided};
use std::time::Duration;

/// Blocks at most where none are asked for.
const MOST: u32 = 16;

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
    rule: UntilDecided,
    blocks: usize,
    /// What is said of it: why it has fewer blocks than there would be with enough time, and which arms took part in fewer.
    pub notes: Vec<String>,
}

impl Ended {
    /// Level of the intervals of an arm that took part in so many blocks.
    pub fn level(&self, blocks: usize) -> Level {
        self.rule.level(blocks)
    }

    /// Level of the intervals of arms that took part in all of its blocks.
    pub fn interval_level(&self) -> f64 {
        self.level(self.blocks).fraction()
    }

    /// The error that all intervals together may spend, without the digits that a level as a fraction does not hold.
    pub fn error_rate(&self) -> f64 {
        (self.rule.whole().error() * 1e9).round() / 1e9
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

    /// What follows; asked after every block.
    pub fn next(&self, results: &[ArmResult], blocks: usize) -> NextBlock {
        match self.limit.is_over() {
            true => NextBlock::Enough,
            false => self.rule.next(&self.arms, results, blocks),
        }
    }

    /// How the trial ended after so many blocks.
    pub fn ended(self, results: &[ArmResult], blocks: usize) -> Ended {
        let (planned, wanted) = (self.planned, self.wanted);
        let is_decided = || self.rule.next(&self.arms, results, blocks) == NextBlock::Enough;
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
        let notes = why.into_iter().chain(ended_early(&self.arms, results, blocks)).collect();
        Ended { rule: self.rule, blocks, notes }
    }
}

/// Which arms took part in fewer blocks than the trial has.
fn ended_early(arms: &[Arm], results: &[ArmResult], blocks: usize) -> Option<String> {
    let of = |(arm, result): (&Arm, &ArmResult)| {
        let had = result.launches.len();
        (had < blocks).then(|| format!("{} after {had}", arm.name))
    };
    let early: Vec<String> = arms.iter().zip(results).filter_map(of).collect();
    (!early.is_empty()).then(|| {
        let early = early.join(", ");
        format!("arms ended before the last of {blocks} blocks, when no open fix was compared with them: {early}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_verify::Role;

    #[test]
    fn arms_that_ended_early_are_named_with_their_blocks() {
        let arm = |name: &str| Arm { name: name.to_owned(), title: String::new(), role: Role::Sham, sham: None };
        let of = |blocks| ArmResult { launches: vec![None; blocks], ..ArmResult::default() };
        let arms = ["cold", "sham_unrelated", "warm"].map(arm);
        let noted = ended_early(&arms, &[of(15), of(8), of(8)], 15).unwrap();
        assert!(noted.ends_with("compared with them: sham_unrelated after 8, warm after 8"), "{noted}");
        assert_eq!(ended_early(&arms, &[of(8), of(8), of(8)], 8), None);
    }
}
