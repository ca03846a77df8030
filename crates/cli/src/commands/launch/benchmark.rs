//! One benchmark: arms in blocks under the same conditions.

use super::stopping::Stopping;
use super::summary;
use crate::arguments::{BenchmarkOptions, Coldness, settings};
use crate::failure::Failure;
use crate::progress::Progress;
use slowpath_report::Benchmark;
use slowpath_verify::benchmark::{LaunchArm, compared};
use slowpath_verify::conditions::Conditions;

/// Runs it, cold as `cold` says or warm.
pub fn run(
    options: &BenchmarkOptions,
    arms: &[LaunchArm],
    cold: Option<Coldness>,
    progress: &Progress,
) -> Result<Benchmark, Failure> {
    let mut conditions =
        Conditions::prepare(settings(&options.device), cold, arms.iter().map(|arm| &arm.target), progress)?;
    let mut stopping = Stopping::new(options, arms.len());
    let compared = compared(arms, &mut conditions, stopping.most, options.seed, progress, |results, blocks| {
        stopping.enough(results, blocks)
    })?;
    if compared.stopped {
        stopping.stop(compared.blocks);
    }
    summary::summarize(options, arms, &conditions, &compared, &stopping)
}
