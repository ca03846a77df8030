//! When a benchmark has enough launches, and which level its intervals then have.

use super::BenchmarkSettings;
use crate::{ArmResult, Metric, matrix};
use slowpath_experiment::looks::{self, Looks};
use slowpath_experiment::{Level, Outcome, effect, outcome};
use std::time::{Duration, Instant};

/// The rule by which a benchmark ends, fixed before its first launch.
pub struct Stopping {
    looks: Option<Looks>,
    base: Level,
    arms: usize,
    metrics: Vec<Metric>,
    min_effect: f64,
    began: Instant,
    max_time: Duration,
    /// Blocks at most.
    pub most: usize,
    end: Option<End>,
}

/// Why a benchmark ended, and the level of its intervals.
#[derive(Clone, Debug)]
pub struct End {
    /// In words.
    pub why: String,
    /// Level of every interval of a comparison.
    pub level: Level,
}

impl Stopping {
    /// The rule that was asked for.
    pub fn new(settings: &BenchmarkSettings, arms: usize) -> Self {
        Self::after(settings.blocks, settings, arms)
    }

    /// The same with `blocks` blocks, or as many as it takes.
    pub fn after(blocks: Option<u32>, settings: &BenchmarkSettings, arms: usize) -> Self {
        let comparisons = arms.saturating_sub(1) * settings.metrics.len();
        // All comparisons hold together with 95 %.
        let base = Level::P95.shared_by(comparisons);
        let most = blocks.unwrap_or(settings.max_blocks) as usize;
        Self {
            looks: blocks.is_none().then(|| Looks::new(most, base)),
            base,
            arms,
            metrics: settings.metrics.clone(),
            min_effect: settings.min_effect,
            began: Instant::now(),
            max_time: settings.max_time,
            most,
            end: None,
        }
    }

    /// Asked after every block; true ends the benchmark.
    pub fn enough(&mut self, results: &[ArmResult], blocks: usize) -> bool {
        let all = blocks >= self.most;
        let late = self.began.elapsed() >= self.max_time;
        self.end = match &self.looks {
            None if all => Some(End { why: format!("{blocks} blocks were asked for"), level: self.base }),
            None if late => Some(End { why: format!("the time was over after {blocks} blocks"), level: self.base }),
            None => None,
            Some(looks) => match looks.at(blocks) {
                Some(level) if self.is_decided(results, blocks, level) => {
                    Some(End { why: self.decided(blocks), level })
                }
                Some(level) if all => Some(End { why: format!("{blocks} blocks, the most allowed"), level }),
                _ if late || all => {
                    // A level always exists unless all of the error was spent, which happens at the last look only.
                    let level = looks.last(blocks).unwrap_or(self.base);
                    let why = if late { "the time was over" } else { "no more blocks are allowed" };
                    Some(End { why: format!("{why} after {blocks} blocks"), level })
                }
                _ => None,
            },
        };
        self.end.is_some()
    }

    /// The user ended it.
    pub fn stop(&mut self, blocks: usize) {
        let level = self.looks.as_ref().and_then(|looks| looks.last(blocks)).unwrap_or(self.base);
        self.end = Some(End { why: format!("it was interrupted after {blocks} blocks"), level });
    }

    fn decided(&self, blocks: usize) -> String {
        if self.arms > 1 {
            format!("every comparison was decided after {blocks} blocks")
        } else {
            format!("the interval of the median was within {} % after {blocks} blocks", self.min_effect * 100.0)
        }
    }

    /// Whether every comparison has an answer: a difference, or none larger than what matters. A single arm: whether its
    /// median is known to that share.
    fn is_decided(&self, results: &[ArmResult], blocks: usize, level: Level) -> bool {
        self.metrics.iter().all(|metric| {
            let samples = matrix(results, *metric, blocks);
            if self.arms == 1 {
                let median =
                    samples.values(0).ok().and_then(|values| slowpath_experiment::median::median(&values, level));
                return median.is_some_and(|median| {
                    let within = |end: Option<f64>| {
                        end.is_some_and(|end| (end - median.value).abs() <= self.min_effect * median.value)
                    };
                    within(median.low) && within(median.high)
                });
            }
            (1..self.arms).all(|arm| {
                let Ok(effect) = effect::paired(&samples, 0, arm, level) else { return false };
                let margin = self.margin(&effect);
                !matches!(outcome::judge(&effect, margin), Outcome::Inconclusive | Outcome::NotTestable)
            })
        })
    }

    /// The largest difference that counts as none, in the unit of the metric.
    pub fn margin(&self, effect: &slowpath_experiment::Effect) -> f64 {
        self.min_effect * effect.baseline.map_or(0.0, |median| median.value)
    }

    /// A p-value of the last look, made comparable with 5 % for all looks and before the correction for several
    /// comparisons.
    pub fn over_all_looks(&self, p: f64) -> f64 {
        match &self.end {
            Some(end) => looks::over_all_looks(p, end.level, self.base),
            None => p,
        }
    }

    /// Why it ended; `None` before that.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }
}
