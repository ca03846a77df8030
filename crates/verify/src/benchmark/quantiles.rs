//! The quantiles that a benchmark is asked for.

use super::{ArmQuantile, BenchmarkSettings};
use crate::printed::quantity;
use crate::{ArmResult, Metric};
use slowpath_experiment::{Estimate, Level, quantile};

fn arm_quantile(metric: Metric, at: f64, estimate: Estimate) -> ArmQuantile {
    ArmQuantile { metric, quantile: at, value: quantity(estimate, metric.unit()) }
}

/// Of one arm, for every metric that is compared.
pub fn of_arm(settings: &BenchmarkSettings, result: &ArmResult) -> Vec<ArmQuantile> {
    let of_metric = |metric: &Metric| {
        let (metric, values) = (*metric, result.values(*metric));
        let one = move |at: &f64| Some(arm_quantile(metric, *at, quantile::quantile(&values, *at, Level::P95)?));
        settings.quantiles.iter().filter_map(one).collect::<Vec<_>>()
    };
    settings.metrics.iter().flat_map(of_metric).collect()
}

/// Differences between two arms.
pub fn between(
    settings: &BenchmarkSettings,
    baseline: &ArmResult,
    treated: &ArmResult,
    metric: Metric,
    level: Level,
) -> Vec<ArmQuantile> {
    let (before, after) = (baseline.values(metric), treated.values(metric));
    let one = |at: &f64| Some(arm_quantile(metric, *at, quantile::difference(&before, &after, *at, level)?));
    settings.quantiles.iter().filter_map(one).collect()
}

/// What is missing of the quantiles, and how many launches would give it.
pub fn notes(settings: &BenchmarkSettings, blocks: usize) -> Vec<String> {
    let missing = settings.quantiles.iter().filter_map(|at| {
        let needed = quantile::needed(*at, Level::P95)?;
        let percent = at * 100.0;
        (needed > blocks)
            .then(|| format!("an interval of the {percent} % quantile takes {needed} launches (--blocks {needed})"))
    });
    missing.collect()
}
