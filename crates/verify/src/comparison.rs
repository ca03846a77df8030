//! Runs the arms block by block, in the order that `experiment` designed, and collects what counts.

use crate::host_activity::HostActivity;
use slowpath_experiment::{Samples, design};
use slowpath_launch::{Measures, Metric};

/// What an arm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The untreated cold launch.
    Baseline,
    /// A fix.
    Fix,
    /// What surrounds the fix, without it.
    Sham,
    /// What another tool offers for the same end.
    Rival,
    /// Everything in memory.
    Warm,
}

/// One arm of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Name, unique in the comparison.
    pub name: String,
    /// One line for the reader.
    pub title: String,
    /// What it is for.
    pub role: Role,
    /// Of a fix: the name of its sham, where that is another than the first.
    pub sham: Option<String>,
}

/// What one launch of an arm gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// It counts.
    Measured(Measured),
    /// It ran, and does not count (a cold launch that was not cold).
    Discarded(String),
    /// It was not ready.
    Failed(String),
    /// The user asked to stop while it ran.
    Stopped,
}

/// A launch that counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Its numbers.
    pub measures: Measures,
    /// Whether children may be missing in those of reaped processes ([`Metric::is_of_reaped`]).
    pub lacks_children: bool,
    /// Whether [`Metric::BytesRead`] is the device's own count, in which nobody is missing.
    pub read_by_device: bool,
    /// What else happened on the machine.
    pub around: HostActivity,
}

/// The launches of one arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmResult {
    /// The launch of each block that the arm took part in; `None` where none counts.
    pub launches: Vec<Option<Measured>>,
    /// Reasons of the launches that ran and do not count.
    pub discarded: Vec<String>,
    /// Reasons of the launches that were not ready.
    pub failed: Vec<String>,
}

impl ArmResult {
    /// A metric by block; `None` where no launch counts or it has no such number.
    pub fn samples(&self, metric: Metric) -> Vec<Option<f64>> {
        self.launches.iter().map(|launch| launch.as_ref()?.measures.get(&metric).copied()).collect()
    }

    /// Why a number may be too small in a launch: children are missing in it.
    pub fn missing_children(&self, metric: Metric) -> Option<&'static str> {
        let is_meant = |launch: &Measured| metric != Metric::BytesRead || !launch.read_by_device;
        let lacks = |launch: &Measured| launch.lacks_children && metric.is_of_reaped() && is_meant(launch);
        self.launches.iter().flatten().any(lacks).then_some(
            "a process ignores SIGCHLD: if it has children, the kernel does not count their CPU time, faults, reads and switches",
        )
    }

    /// A metric of the launches that have it.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        self.samples(metric).into_iter().flatten().collect()
    }
}

/// All launches of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The arms, in the order of `results`.
    pub arms: Vec<Arm>,
    /// Their launches.
    pub results: Vec<ArmResult>,
    /// The order in which the arms ran, by block; those that had ended are not in it.
    pub order: Vec<Vec<usize>>,
    /// Blocks that were run.
    pub blocks: usize,
    /// Seed of the order.
    pub seed: u64,
    /// Whether the caller asked to stop: then these are the whole blocks until then.
    pub stopped: bool,
}

impl Comparison {
    /// A metric as a matrix for `experiment`.
    pub fn samples(&self, metric: Metric) -> Samples {
        matrix(&self.results, metric, self.blocks)
    }
}

/// The first `blocks` blocks of a metric. Cells of an arm that took part in fewer stay empty.
pub fn matrix(results: &[ArmResult], metric: Metric, blocks: usize) -> Samples {
    let mut samples = Samples::new(results.len(), blocks);
    for (arm, result) in results.iter().enumerate() {
        for (block, value) in result.samples(metric).into_iter().take(blocks).enumerate() {
            if let Some(value) = value {
                // Arm and block are inside the matrix, and a number of a launch is finite.
                let _ = samples.set(arm, block, value);
            }
        }
    }
    samples
}

/// What follows a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextBlock {
    /// One with the arms of this one.
    SameArms,
    /// One with these alone: nothing waits for a launch of the others any more.
    Only(Vec<usize>),
    /// None: that suffices.
    Enough,
}

impl NextBlock {
    /// All arms end together, when that suffices.
    pub fn unless(enough: bool) -> Self {
        if enough { Self::Enough } else { Self::SameArms }
    }
}

/// How far a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Number of the block that the last launch was of, from 1.
    pub block: usize,
    /// Launches that are made.
    pub launches: usize,
    /// As many as there will be, with all blocks and the arms of this one.
    pub planned: usize,
}

/// Why a comparison was given up.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError<E: std::error::Error + 'static> {
    /// A launch could not be made.
    #[error("a launch of arm {arm} could not be made")]
    Launch {
        /// The arm.
        arm: String,
        /// Why.
        #[source]
        source: E,
    },
    /// An arm was not ready in [`ATTEMPTS`] launches in a row.
    #[error("arm {arm} was not ready in {ATTEMPTS} launches in a row: {reason}")]
    NeverReady {
        /// The arm.
        arm: String,
        /// The last reason.
        reason: String,
    },
    /// The caller asked to stop before the comparison had what it needs.
    #[error("stopped on request")]
    Stopped,
}

/// Launches of one arm in one block until one counts; after that the cell stays empty.
pub const ATTEMPTS: usize = 3;

/// Runs `blocks` blocks. `launch(arm, block)` makes one launch; `progress` is called after each and returns false to stop.
///
/// # Errors
/// A launch could not be made at all, an arm never gets ready, or the caller stopped it. Discarded launches are data.
pub fn compare<E: std::error::Error + 'static>(
    arms: Vec<Arm>,
    blocks: usize,
    seed: u64,
    launch: impl FnMut(usize, usize) -> Result<Sample, E>,
    progress: impl FnMut(Made) -> bool,
) -> Result<Comparison, ComparisonError<E>> {
    let comparison = compare_until(arms, blocks, seed, launch, progress, |_, _| NextBlock::SameArms)?;
    if comparison.stopped { Err(ComparisonError::Stopped) } else { Ok(comparison) }
}

/// The same, and asks `next(results, blocks done)` after every block what follows. An arm that has ended has launches of the blocks
/// until then. A comparison that is stopped keeps its whole blocks.
///
/// # Errors
/// As [`compare`]; stopped before the first block was whole.
pub fn compare_until<E: std::error::Error + 'static>(
    arms: Vec<Arm>,
    blocks: usize,
    seed: u64,
    mut launch: impl FnMut(usize, usize) -> Result<Sample, E>,
    mut progress: impl FnMut(Made) -> bool,
    mut next: impl FnMut(&[ArmResult], usize) -> NextBlock,
) -> Result<Comparison, ComparisonError<E>> {
    let mut results = vec![ArmResult::default(); arms.len()];
    let mut order = design::schedule(arms.len(), blocks, seed);
    let mut planned = blocks * arms.len();
    let mut made = 0;
    let mut stopped = false;
    'blocks: for block in 0..order.len() {
        for (place, &arm) in order[block].iter().enumerate() {
            results[arm].launches.push(None);
            let named = || arms[arm].name.clone();
            let mut once = || launch(arm, block).map_err(|source| ComparisonError::Launch { arm: named(), source });
            let attempts = one_that_counts(&mut once, &mut results[arm], block)?;
            if let Attempts::NeverReady(reason) = attempts {
                return Err(ComparisonError::NeverReady { arm: named(), reason });
            }
            made += 1;
            let is_cut = matches!(attempts, Attempts::Stopped);
            if is_cut || !progress(Made { block: block + 1, launches: made, planned }) {
                let is_whole = !is_cut && place + 1 == order[block].len();
                let whole = block + usize::from(is_whole);
                if whole == 0 {
                    return Err(ComparisonError::Stopped);
                }
                results.iter_mut().for_each(|result| result.launches.truncate(whole));
                order.truncate(whole);
                stopped = true;
                break 'blocks;
            }
        }
        match next(&results, block + 1) {
            NextBlock::SameArms => {}
            NextBlock::Only(arms) => {
                order[block + 1..].iter_mut().for_each(|order| order.retain(|arm| arms.contains(arm)));
                planned = made + order[block + 1..].iter().map(Vec::len).sum::<usize>();
            }
            NextBlock::Enough => {
                order.truncate(block + 1);
                break;
            }
        }
    }
    Ok(Comparison { arms, results, blocks: order.len(), order, seed, stopped })
}

/// How the attempts at one launch ended.
enum Attempts {
    /// With a launch that counts, or with an empty cell.
    Over,
    /// None was ready, for this reason.
    NeverReady(String),
    /// The user asked to stop.
    Stopped,
}

/// Launches until one counts, [`ATTEMPTS`] times at most.
fn one_that_counts<E>(
    launch: &mut impl FnMut() -> Result<Sample, E>,
    result: &mut ArmResult,
    block: usize,
) -> Result<Attempts, E> {
    let mut failures = 0;
    for _ in 0..ATTEMPTS {
        match launch()? {
            Sample::Measured(measured) => {
                result.launches[block] = Some(measured);
                break;
            }
            Sample::Discarded(reason) => result.discarded.push(reason),
            Sample::Failed(reason) => {
                failures += 1;
                result.failed.push(reason.clone());
                if failures == ATTEMPTS {
                    return Ok(Attempts::NeverReady(reason));
                }
            }
            Sample::Stopped => return Ok(Attempts::Stopped),
        }
    }
    Ok(Attempts::Over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn measured(ms: f64) -> Sample {
        Sample::Measured(Measured { measures: [(Metric::Wall, ms)].into(), ..Measured::default() })
    }

    fn arms() -> Vec<Arm> {
        ["cold", "fix"]
            .map(|name| Arm { name: name.to_owned(), title: String::new(), role: Role::Baseline, sham: None })
            .into()
    }

    #[test]
    fn every_block_holds_every_arm_once_in_changing_order() {
        let mut seen = Vec::new();
        let launch = |arm, block| {
            seen.push((block, arm));
            Ok::<_, Infallible>(measured(1.0))
        };
        let comparison = compare(arms(), 8, 1, launch, |_| true).unwrap();
        assert!(
            comparison.results.iter().all(|arm| arm.launches.len() == 8 && arm.launches.iter().all(Option::is_some))
        );
        let first: Vec<usize> = seen.iter().step_by(2).map(|(_, arm)| *arm).collect();
        assert_eq!(first.iter().filter(|arm| **arm == 0).count(), 4);
    }

    #[test]
    fn a_lukewarm_launch_is_repeated_and_counted() {
        let mut calls = 0;
        let launch = |arm, _| {
            calls += 1;
            let lukewarm = arm == 0 && calls < 3;
            Ok::<_, Infallible>(if lukewarm { Sample::Discarded("lukewarm".to_owned()) } else { measured(1.0) })
        };
        let comparison = compare(arms(), 1, 3, launch, |_| true).unwrap();
        assert!(!comparison.results[0].discarded.is_empty());
        assert_eq!(comparison.results[0].samples(Metric::Wall), [Some(1.0)]);
    }

    #[test]
    fn an_arm_that_is_never_ready_ends_the_comparison_with_its_reason() {
        let launch = |_, _| Ok::<_, Infallible>(Sample::Failed("time-out".to_owned()));
        let error = compare(arms(), 2, 3, launch, |_| true).unwrap_err().to_string();
        assert!(error.ends_with("was not ready in 3 launches in a row: time-out"), "{error}");
    }

    #[test]
    fn a_comparison_that_is_stopped_keeps_its_whole_blocks() {
        let mut calls = 0;
        let launch = |_, _| {
            calls += 1;
            Ok::<_, Infallible>(if calls == 6 { Sample::Stopped } else { measured(1.0) })
        };
        let comparison = compare_until(arms(), 50, 3, launch, |_| true, |_, _| NextBlock::SameArms).unwrap();
        assert!(comparison.stopped && comparison.blocks == 2 && comparison.order.len() == 2, "{comparison:?}");
        assert!(comparison.results.iter().all(|result| result.launches.len() == 2));
        let progress = |made: Made| made.launches < 6;
        let launch = |_, _| Ok::<_, Infallible>(measured(1.0));
        let comparison = compare_until(arms(), 50, 3, launch, progress, |_, _| NextBlock::SameArms).unwrap();
        assert!(comparison.stopped && comparison.blocks == 3, "{comparison:?}");
        assert!(matches!(compare(arms(), 50, 3, launch, progress), Err(ComparisonError::Stopped)));
        let at_once = |_, _| Ok::<_, Infallible>(Sample::Stopped);
        let error = compare_until(arms(), 50, 3, at_once, |_| true, |_, _| NextBlock::SameArms).unwrap_err();
        assert!(matches!(error, ComparisonError::Stopped));
    }

    #[test]
    fn a_comparison_that_has_enough_ends_with_a_whole_block() {
        let launch = |arm, block| Ok::<_, Infallible>(measured((10 * block + arm) as f64));
        let next = |_: &[ArmResult], blocks| NextBlock::unless(blocks == 3);
        let comparison = compare_until(arms(), 50, 3, launch, |_| true, next).unwrap();
        assert_eq!((comparison.blocks, comparison.order.len()), (3, 3));
        let samples = comparison.samples(Metric::Wall);
        assert_eq!((samples.blocks(), samples.get(1, 2)), (3, Some(21.0)));
        assert_eq!(comparison.samples(Metric::Cpu).get(1, 2), None);
    }

    #[test]
    fn an_arm_that_ends_has_the_launches_until_then_and_the_others_go_on() {
        let mut seen = Vec::new();
        let launch = |arm, block| {
            seen.push((block, arm));
            Ok::<_, Infallible>(measured((10 * block + arm) as f64))
        };
        let mut last = None;
        let next = |_: &[ArmResult], blocks| match blocks {
            2 => NextBlock::Only(vec![1]),
            _ => NextBlock::SameArms,
        };
        let progress = |made| {
            last = Some(made);
            true
        };
        let comparison = compare_until(arms(), 5, 3, launch, progress, next).unwrap();
        assert_eq!(comparison.results.iter().map(|arm| arm.launches.len()).collect::<Vec<_>>(), [2, 5]);
        assert_eq!((comparison.blocks, comparison.order[2..].to_vec()), (5, vec![vec![1]; 3]));
        assert_eq!(seen.iter().filter(|(block, _)| *block >= 2).map(|(_, arm)| *arm).collect::<Vec<_>>(), [1; 3]);
        assert_eq!(last, Some(Made { block: 5, launches: 7, planned: 7 }));
        let samples = comparison.samples(Metric::Wall);
        assert_eq!((samples.get(0, 1), samples.get(0, 2), samples.get(1, 4)), (Some(10.0), None, Some(41.0)));
    }

    #[test]
    fn a_comparison_that_is_stopped_after_an_arm_ended_keeps_its_whole_blocks() {
        let launch = |_, _| Ok::<_, Infallible>(measured(1.0));
        let next = |_: &[ArmResult], blocks| if blocks == 1 { NextBlock::Only(vec![0]) } else { NextBlock::SameArms };
        let comparison = compare_until(arms(), 50, 3, launch, |made: Made| made.launches < 4, next).unwrap();
        assert_eq!((comparison.stopped, comparison.blocks), (true, 3));
        assert_eq!(comparison.results.iter().map(|arm| arm.launches.len()).collect::<Vec<_>>(), [3, 1]);
    }
}
