//! What is asked of a scenario.

use std::time::Duration;

/// How rounds are made and compared.
#[derive(Clone, Debug)]
pub struct ScenarioSettings {
    /// Rounds; in each, every browser visits every page once.
    pub rounds: u32,
    /// The smallest difference that matters, as a share of the first browser.
    pub min_effect: f64,
    /// Time at most; the round that runs is finished.
    pub max_time: Duration,
    /// The longest that the start and each page may take.
    pub limit: Duration,
    /// Seed of all orders.
    pub seed: u64,
}
