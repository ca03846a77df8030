//! The quantiles that the command line asks for.

use crate::arguments::BenchmarkOptions;
use slowpath_experiment::{Estimate, Level, quantile};
use slowpath_report::{ArmQuantile, quantity};
use slowpath_verify::{ArmResult, Metric};

fn told(metric: Metric, at: f64, estimate: Estimate) -> ArmQuantile {
    ArmQuantile { metric, quantile: at, value: quantity(estimate, metric.unit()) }
}

/// Of one arm, for every metric that is compared.
pub fn of_arm(options: &BenchmarkOptions, result: &ArmResult) -> Vec<ArmQuantile> {
    let of_metric = |metric: &Metric| {
        let (metric, values) = (*metric, result.values(*metric));
        let one = move |at: &f64| Some(told(metric, *at, quantile::quantile(&values, *at, Level::P95)?));
        options.quantile.iter().filter_map(one).collect::<Vec<_>>()
    };
    options.metric.iter().flat_map(of_metric).collect()
}

/// Differences between two arms.
pub fn between(
    options: &BenchmarkOptions,
    baseline: &ArmResult,
    treated: &ArmResult,
    metric: Metric,
    level: Level,
) -> Vec<ArmQuantile> {
    let (before, after) = (baseline.values(metric), treated.values(metric));
    let one = |at: &f64| Some(told(metric, *at, quantile::difference(&before, &after, *at, level)?));
    options.quantile.iter().filter_map(one).collect()
}

/// What is missing of the quantiles, and how many launches would give it.
pub fn notes(options: &BenchmarkOptions, blocks: usize) -> Vec<String> {
    let missing = options.quantile.iter().filter_map(|at| {
        let needed = quantile::needed(*at, Level::P95)?;
        let percent = at * 100.0;
        (needed > blocks)
            .then(|| format!("an interval of the {percent} % quantile takes {needed} launches (--blocks {needed})"))
    });
    missing.collect()
}
