//! What speaks against trusting the figures of a benchmark.

use super::{BenchmarkArm, BenchmarkSettings, quantiles};
use crate::conditions::Conditions;
use crate::{ArmResult, Comparison, Metric};
use slowpath_experiment::series;

/// All of them, in words.
pub fn of(
    settings: &BenchmarkSettings,
    conditions: &Conditions,
    arms: &[BenchmarkArm],
    compared: &Comparison,
) -> Vec<String> {
    let mut found = Vec::new();
    if conditions.is_warm() {
        found.extend(not_wholly_warm(arms));
    }
    found.extend(missing_children(arms, compared));
    for metric in &settings.metrics {
        found.extend(drift(arms, compared, *metric));
        found.extend(dependence(arms, compared, *metric));
    }
    found.extend(quantiles::notes(settings, compared.blocks));
    found
}

/// CPU time and counts that lack processes, by arm.
fn missing_children(arms: &[BenchmarkArm], compared: &Comparison) -> Vec<String> {
    let of_arm = |(arm, result): (&BenchmarkArm, &ArmResult)| {
        Some(format!("{}: {}", arm.name, result.missing_children(Metric::Cpu)?))
    };
    arms.iter().zip(&compared.results).filter_map(of_arm).collect()
}

/// A warm launch that waited for storage was not warm.
fn not_wholly_warm(arms: &[BenchmarkArm]) -> Vec<String> {
    let of_arm = |arm: &BenchmarkArm| {
        let launches = arm.launches.iter().flatten();
        let counts =
            launches.filter_map(|launch| launch.measures.get(&Metric::MajorFaults)).filter(|count| **count > 0.0);
        let (number, most) = counts.fold((0, 0.0f64), |(number, most), count| (number + 1, most.max(*count)));
        let name = &arm.name;
        (number > 0)
            .then(|| format!("not wholly warm: {number} of the launches of {name} had major faults, {most:.0} at most"))
    };
    arms.iter().filter_map(of_arm).collect()
}

/// The first arm's values rise or fall: the machine changed meanwhile.
fn drift(arms: &[BenchmarkArm], compared: &Comparison, metric: Metric) -> Option<String> {
    let values = compared.results.first()?.values(metric);
    let p = series::trend(&values).filter(|p| *p < series::TELL_BELOW)?;
    let third = (values.len() / 3).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let change = mean(&values[values.len() - third..]) / mean(&values[..third]) - 1.0;
    let harm =
        if arms.len() > 1 { "blocks keep it out of the comparisons" } else { "the median depends on when it ran" };
    Some(format!(
        "the machine drifted: {} of {} changed by {:+.1} % from the first third to the last (p = {p:.4}); {harm}",
        metric.name(),
        arms.first()?.name,
        change * 100.0
    ))
}

/// Pair differences that depend on their neighbours.
fn dependence(arms: &[BenchmarkArm], compared: &Comparison, metric: Metric) -> Vec<String> {
    let samples = compared.samples(metric);
    let of_arm = |(index, arm): (usize, &BenchmarkArm)| {
        let rows = samples.complete([0, index]).ok()?.rows;
        let differences: Vec<f64> = rows.iter().map(|[before, after]| after - before).collect();
        let p = series::dependence(&differences).filter(|p| *p < series::TELL_BELOW)?;
        Some(format!(
            "differences of {} in {} depend on those of the blocks before (p = {p:.4}): their interval may be too narrow",
            arm.name,
            metric.name()
        ))
    };
    arms.iter().enumerate().skip(1).filter_map(of_arm).collect()
}
