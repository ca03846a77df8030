//! From the launches to what is printed: medians, comparisons, what stands out, and what speaks against the figures.

use super::stopping::Stopping;
use super::{
    ArmComparison, Benchmark, BenchmarkArm, BenchmarkSettings, LAUNCH_SCHEMA, LaunchArm, OneLaunch, Outlier, doubts,
    quantiles,
};
use crate::conditions::Conditions;
use crate::printed::quantity;
use crate::{ArmResult, Comparison, HostActivity, Measured, Metric};
use slowpath_experiment::{Effect, Level, effect, median, multiple, outcome, outliers};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_tables::{Quantity, Unit};
use std::collections::BTreeMap;

/// The benchmark.
pub fn summarize(
    settings: &BenchmarkSettings,
    arms: &[LaunchArm],
    conditions: &Conditions,
    compared: &Comparison,
    stopping: &Stopping,
) -> Result<Benchmark, Failure> {
    let (level, ended) = match stopping.end() {
        Some(end) => (end.level, end.why.clone()),
        None => (Level::P95, "it was ended".to_owned()),
    };
    let summaries = arms.iter().zip(&compared.results).enumerate();
    let summaries: Vec<BenchmarkArm> =
        summaries.map(|(index, (arm, result))| summary(settings, arm, index, result, compared)).collect();
    let notes = doubts::of(settings, conditions, &summaries, compared);
    let comparisons = comparisons(settings, arms, compared, stopping, level)?;
    Ok(Benchmark {
        schema: LAUNCH_SCHEMA.to_owned(),
        ready: arms.first().map(|arm| arm.target.ready.to_string()).unwrap_or_default(),
        conditions: conditions.words(),
        seed: compared.seed,
        blocks: u32::try_from(compared.blocks).unwrap_or(u32::MAX),
        ended,
        compared: settings.metrics.clone(),
        units: Metric::ALL.map(|metric| (metric, metric.unit())).into(),
        arms: summaries,
        comparisons,
        notes,
        unavailable: Vec::new(),
    })
}

fn summary(
    settings: &BenchmarkSettings,
    arm: &LaunchArm,
    index: usize,
    result: &ArmResult,
    compared: &Comparison,
) -> BenchmarkArm {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in result.discarded.iter().chain(&result.failed) {
        *reasons.entry(reason).or_default() += 1;
    }
    let position = |block: usize| compared.order[block].iter().position(|arm| *arm == index).unwrap_or(0);
    let launches = result.launches.iter().enumerate().map(|(block, launch)| {
        launch.as_ref().map(|launch| OneLaunch {
            position: u32::try_from(position(block)).unwrap_or(u32::MAX),
            measures: launch.measures.clone(),
            around: launch.around,
        })
    });
    let median = |metric: Metric| {
        let estimate = median::median(&result.values(metric), Level::P95)?;
        Some((metric, quantity(estimate, metric.unit())))
    };
    BenchmarkArm {
        name: arm.name.clone(),
        command: arm.target.words(),
        launches: launches.collect(),
        medians: Metric::ALL.into_iter().filter_map(median).collect(),
        quantiles: quantiles::of_arm(settings, result),
        discarded: u32::try_from(result.discarded.len()).unwrap_or(u32::MAX),
        failed: u32::try_from(result.failed.len()).unwrap_or(u32::MAX),
        reasons: reasons.into_iter().map(|(reason, count)| format!("{count} x {reason}")).collect(),
        outliers: settings.metrics.iter().flat_map(|metric| standing_out(result, *metric)).collect(),
    }
}

/// The launches that stand out, each with what was unlike the others.
fn standing_out(result: &ArmResult, metric: Metric) -> Vec<Outlier> {
    let counted: Vec<(usize, &Measured, f64)> = result
        .launches
        .iter()
        .enumerate()
        .filter_map(|(block, launch)| {
            let launch = launch.as_ref()?;
            Some((block, launch, *launch.measures.get(&metric)?))
        })
        .collect();
    let values: Vec<f64> = counted.iter().map(|(_, _, value)| *value).collect();
    let usual: Vec<HostActivity> = counted.iter().map(|(_, launch, _)| launch.around).collect();
    let major: Vec<f64> =
        counted.iter().filter_map(|(_, launch, _)| launch.measures.get(&Metric::MajorFaults).copied()).collect();
    let usual_major = median::point(&major).unwrap_or(0.0);
    let found = outliers::outliers(&values);
    found
        .into_iter()
        .map(|outlier| {
            let (block, launch, value) = counted[outlier.index];
            let mut reasons = launch.around.unlike(&usual);
            let major = launch.measures.get(&Metric::MajorFaults).copied().unwrap_or(0.0);
            if major > 2.0 * usual_major && major >= usual_major + 5.0 {
                reasons.push(format!("{major:.0} major faults (usually {usual_major:.0})"));
            }
            Outlier { block: u32::try_from(block).unwrap_or(u32::MAX), metric, value, sigmas: outlier.sigmas, reasons }
        })
        .collect()
}

fn comparisons(
    settings: &BenchmarkSettings,
    arms: &[LaunchArm],
    compared: &Comparison,
    stopping: &Stopping,
    level: Level,
) -> Result<Vec<ArmComparison>, Failure> {
    let mut found = Vec::new();
    let mut raw = Vec::new();
    for metric in &settings.metrics {
        let samples = compared.samples(*metric);
        for (index, arm) in arms.iter().enumerate().skip(1) {
            let effect = effect::paired(&samples, 0, index, level).map_err(failed(Kind::Machine))?;
            let p = effect::p_value(&samples, 0, index).map_err(failed(Kind::Machine))?;
            raw.push(p.map(|p| stopping.over_all_looks(p)));
            let (first, other) = (&compared.results[0], &compared.results[index]);
            let quantiles = quantiles::between(settings, first, other, *metric, level);
            found
                .push(ArmComparison { quantiles, ..comparison(arms, arm, *metric, &effect, stopping.margin(&effect)) });
        }
    }
    for (one, adjusted) in found.iter_mut().zip(multiple::holm(&raw)) {
        one.p = adjusted;
    }
    Ok(found)
}

fn comparison(arms: &[LaunchArm], arm: &LaunchArm, metric: Metric, effect: &Effect, margin: f64) -> ArmComparison {
    let unit = metric.unit();
    ArmComparison {
        arm: arm.name.clone(),
        against: arms[0].name.clone(),
        metric,
        outcome: outcome::judge(effect, margin),
        difference: effect.difference.map(|estimate| quantity(estimate, unit)),
        ratio: effect.ratio.map(|estimate| quantity(estimate, Unit::Ratio)),
        quantiles: Vec::new(),
        margin: effect.baseline.is_some().then(|| Quantity::exact(margin, unit)),
        minimum_detectable_effect: effect.minimum_detectable_effect.map(|value| Quantity::exact(value, unit)),
        pairs: u32::try_from(effect.pairs).unwrap_or(u32::MAX),
        dropped: u32::try_from(effect.dropped).unwrap_or(u32::MAX),
        p: None,
        level: effect.level,
    }
}
