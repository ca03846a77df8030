//! Runs blocks of treatments and keeps what they gave: which treatments a block holds changes from stage to stage, and whatever two of
//! them share a block are compared by its pairs.

use super::treatment::Treatment;
use super::{Ended, Progress};
use crate::comparison::{ATTEMPTS, Measured, Sample};
use crate::metric::Metric;
use slowpath_experiment::{Estimate, Level, design, median, signed_rank};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a bisection launches with.
pub struct Bench<'a, E> {
    /// Makes one launch under these conditions; the number is that of the block.
    pub launch: &'a mut dyn FnMut(&Treatment, usize) -> Result<Sample, E>,
    /// Time since the bisection began.
    pub elapsed: &'a dyn Fn() -> Duration,
    /// Told after each launch; false ends the bisection with the whole blocks until then.
    pub progress: &'a mut dyn FnMut(&Progress) -> bool,
}

/// The difference of two treatments: an estimate of the logarithm of their ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRatio {
    /// Logarithm of the ratio, with its interval.
    pub estimate: Estimate,
    /// Pairs from the same blocks.
    pub pairs: usize,
    /// Level of the interval.
    pub level: Level,
}

impl LogRatio {
    /// Of differences of logarithms; `None` without any.
    pub(super) fn of(pairs: &[f64], level: Level) -> Option<Self> {
        Some(Self { estimate: signed_rank::centre(pairs, level)?, pairs: pairs.len(), level })
    }

    /// Whether the whole interval is above zero.
    pub fn is_above_zero(&self) -> bool {
        self.estimate.low.is_some_and(|low| low > 0.0)
    }

    /// Whether the whole interval is below `margin`.
    pub fn is_below(&self, margin: f64) -> bool {
        self.estimate.high.is_some_and(|high| high < margin)
    }
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// All its blocks were run.
    Whole,
    /// The next block would have ended too late.
    Late,
    /// The user asked to stop.
    Stopped,
}

/// All launches of a bisection.
pub(super) struct Launches<'a, E> {
    bench: Bench<'a, E>,
    blocks: Vec<BTreeMap<Treatment, Measured>>,
    /// Time that the launches of a treatment took, and their number.
    costs: BTreeMap<Treatment, (f64, u32)>,
    failed: BTreeMap<Treatment, String>,
    seed: u64,
    stages: u64,
    launched: usize,
    ended: Ended,
}

impl<'a, E> Launches<'a, E> {
    pub(super) fn new(bench: Bench<'a, E>, seed: u64) -> Self {
        Self {
            bench,
            blocks: Vec::new(),
            costs: BTreeMap::new(),
            failed: BTreeMap::new(),
            seed,
            stages: 0,
            launched: 0,
            ended: Ended::Decided,
        }
    }

    /// Runs up to `blocks` blocks of these treatments, none of which is likely to end after `until`.
    ///
    /// # Errors
    /// A launch could not be made at all. A treatment that never gets ready is left out from then on: see [`Self::failure`].
    pub(super) fn run(
        &mut self,
        phase: &str,
        treatments: &[Treatment],
        blocks: usize,
        until: Duration,
    ) -> Result<Stage, E> {
        let mut treatments: Vec<Treatment> = treatments.to_vec();
        treatments.sort();
        treatments.dedup();
        treatments.retain(|one| !self.failed.contains_key(one));
        self.stages += 1;
        let order = design::schedule(treatments.len(), blocks, stage_seed(self.seed, self.stages));
        for row in order {
            if self.ended == Ended::Stopped {
                return Ok(Stage::Stopped);
            }
            let length: f64 = treatments.iter().map(|one| self.cost(one)).sum();
            if (self.bench.elapsed)().as_secs_f64() + length > until.as_secs_f64() {
                return Ok(Stage::Late);
            }
            let mut block = BTreeMap::new();
            for treatment in row.iter().map(|arm| &treatments[*arm]) {
                let Some(measured) = self.one(treatment)? else {
                    continue;
                };
                block.insert(treatment.clone(), measured);
                let progress =
                    Progress { phase: phase.to_owned(), launches: self.launched, elapsed: (self.bench.elapsed)() };
                if !(self.bench.progress)(&progress) {
                    self.ended = Ended::Stopped;
                }
                if self.ended == Ended::Stopped {
                    break;
                }
            }
            if self.ended == Ended::Stopped && block.len() < treatments.len() {
                return Ok(Stage::Stopped);
            }
            self.blocks.push(block);
        }
        Ok(Stage::Whole)
    }

    /// Launches until one counts; `None`: none did, or the user asked to stop.
    fn one(&mut self, treatment: &Treatment) -> Result<Option<Measured>, E> {
        let mut failures = 0;
        for _ in 0..ATTEMPTS {
            let before = (self.bench.elapsed)();
            let sample = (self.bench.launch)(treatment, self.blocks.len())?;
            self.launched += 1;
            match sample {
                Sample::Measured(measured) => {
                    let took = ((self.bench.elapsed)().saturating_sub(before)).as_secs_f64();
                    let (sum, number) = self.costs.entry(treatment.clone()).or_default();
                    *sum += took;
                    *number += 1;
                    return Ok(Some(measured));
                }
                Sample::Discarded(_) => {}
                Sample::Failed(reason) => {
                    failures += 1;
                    if failures == ATTEMPTS {
                        self.failed.insert(treatment.clone(), reason);
                    }
                }
                Sample::Stopped => {
                    self.ended = Ended::Stopped;
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Seconds that a launch is expected to take: as those before, or as the longest of others.
    pub(super) fn cost(&self, treatment: &Treatment) -> f64 {
        let mean = |(sum, number): &(f64, u32)| sum / f64::from((*number).max(1));
        match self.costs.get(treatment) {
            Some(cost) => mean(cost),
            None => self.costs.values().map(mean).fold(0.0, f64::max),
        }
    }

    /// Makes the launches until now count for nothing but their time: they brought files into memory.
    pub(super) fn forget(&mut self) {
        self.blocks.clear();
    }

    /// Why a treatment was never ready.
    pub(super) fn failure(&self, treatment: &Treatment) -> Option<&str> {
        self.failed.get(treatment).map(String::as_str)
    }

    /// The number of the next block.
    pub(super) fn next_block(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks from `from` on that hold both.
    pub(super) fn shared(&self, one: &Treatment, other: &Treatment, from: usize) -> usize {
        self.blocks.iter().skip(from).filter(|block| block.contains_key(one) && block.contains_key(other)).count()
    }

    /// Logarithms of `slower` over `quicker` in the blocks from `from` on that hold both. What is not positive has no logarithm, and
    /// its block is left out.
    pub(super) fn pairs(&self, metric: Metric, quicker: &Treatment, slower: &Treatment, from: usize) -> Vec<f64> {
        let values = self.values(metric, [quicker, slower], from);
        let logarithm = |[before, after]: [f64; 2]| (before > 0.0 && after > 0.0).then(|| after.ln() - before.ln());
        values.into_iter().filter_map(logarithm).collect()
    }

    /// The values of a metric in the blocks from `from` on that hold all of `treatments`.
    pub(super) fn values<const N: usize>(
        &self,
        metric: Metric,
        treatments: [&Treatment; N],
        from: usize,
    ) -> Vec<[f64; N]> {
        let of_block = |block: &BTreeMap<Treatment, Measured>| {
            let mut row = [0.0; N];
            for (value, treatment) in row.iter_mut().zip(treatments) {
                *value = *block.get(treatment)?.measures.get(&metric)?;
            }
            Some(row)
        };
        self.blocks.iter().skip(from).filter_map(of_block).collect()
    }

    /// The median of a treatment over all blocks, with its 95 % interval.
    pub(super) fn median(&self, metric: Metric, treatment: &Treatment) -> Option<Estimate> {
        let values: Vec<f64> = self.values(metric, [treatment], 0).into_iter().flatten().collect();
        median::median(&values, Level::P95)
    }

    pub(super) fn elapsed(&self) -> Duration {
        (self.bench.elapsed)()
    }

    pub(super) fn launched(&self) -> usize {
        self.launched
    }

    /// Remembers that time was over for something that was still open.
    pub(super) fn note(&mut self, stage: Stage) {
        if stage == Stage::Late && self.ended == Ended::Decided {
            self.ended = Ended::TimeOver;
        }
    }

    pub(super) fn ended(&self) -> Ended {
        self.ended
    }
}

/// Each stage has an order of its own. splitmix64 (Steele, Lea and Flood, 2014) of seed and stage.
fn stage_seed(seed: u64, stage: u64) -> u64 {
    let mut z = seed.wrapping_add(stage.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
