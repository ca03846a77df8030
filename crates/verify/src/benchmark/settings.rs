//! What a benchmark is asked for, and running one.

use super::stopping::Stopping;
use super::{Benchmark, LaunchArm, compared, summary};
use crate::conditions::{Coldness, Conditions};
use slowpath_lab::Settings;
use slowpath_launch::Metric;
use slowpath_session::Progress;
use slowpath_session::failure::Failure;
use std::time::Duration;

/// How launches are made and compared.
#[derive(Clone, Debug)]
pub struct BenchmarkSettings {
    /// What is compared; the first leads. All share one error rate.
    pub metrics: Vec<Metric>,
    /// Quantiles that are compared besides, as shares: 0.95.
    pub quantiles: Vec<f64>,
    /// The smallest difference that matters, as a share of the first arm.
    pub min_effect: f64,
    /// Exactly so many blocks; `None`: until every comparison is decided.
    pub blocks: Option<u32>,
    /// Blocks at most.
    pub max_blocks: u32,
    /// Time at most; the block that runs is finished.
    pub max_time: Duration,
    /// Seed of the order of the launches and of the size of their environment.
    pub seed: u64,
    /// The device of a lab.
    pub device: Settings,
}

/// Runs a benchmark, cold as `cold` says or warm.
///
/// # Errors
/// An arm failed in its first launch or was never ready, this machine cannot do it, or the user ended it before the first block.
pub fn run(
    settings: &BenchmarkSettings,
    arms: &[LaunchArm],
    cold: Option<Coldness>,
    progress: &dyn Progress,
) -> Result<Benchmark, Failure> {
    let targets = arms.iter().map(|arm| &arm.target);
    let mut conditions = Conditions::prepare(settings.device, cold, targets, progress)?;
    let mut stopping = Stopping::new(settings, arms.len());
    let compared = compared(arms, &mut conditions, stopping.most, settings.seed, progress, |results, blocks| {
        stopping.enough(results, blocks)
    })?;
    if compared.stopped {
        stopping.stop(compared.blocks);
    }
    summary::summarize(settings, arms, &conditions, &compared, &stopping)
}
