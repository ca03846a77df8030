//! What is asked of a benchmark.

use slowpath_lab::Settings;
use slowpath_launch::Metric;
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
