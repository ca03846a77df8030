//! A launch benchmark: arms in blocks under the same conditions, each launch in an environment of a size that differs between blocks.
//!
//! Owns the launches, when there are enough of them ([`stopping`]), what is said of them ([`Benchmark`]) and against them
//! (`doubts`), and how far such a benchmark can be trusted ([`selftest`]). Leaves to its callers which arms there are.

pub mod arms;
mod doubts;
mod launches;
mod printed;
mod quantiles;
pub mod selftest;
mod settings;
pub mod stopping;
mod summary;
pub mod words;

pub use arms::LaunchArm;
pub(crate) use launches::HINT;
pub use launches::{Launched, Launches, compared, comparison_failure, pad};
pub use printed::{
    ArmComparison, ArmQuantile, Benchmark, BenchmarkArm, LADDER_SCHEMA, LAUNCH_SCHEMA, Ladder, OneLaunch, Outlier,
};
pub use settings::BenchmarkSettings;

use crate::conditions::{Coldness, Conditions};
use slowpath_session::Progress;
use slowpath_session::failure::Failure;
use stopping::Stopping;

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
