//! An arm's launches and a judgement in the form that is printed, for cold and warm diagnoses alike.

use crate::printed::{ArmRole, ArmSummary, Decision, Verdict};
use slowpath_experiment::{Level, median};
use slowpath_tables::Quantity;
use slowpath_verify::printed::{Outcome, quantity};
use slowpath_verify::{Arm, ArmResult, Judgement, Metric, Role};
use std::collections::BTreeMap;

/// The launches of an arm.
pub fn arm_summary(arm: &Arm, result: &ArmResult) -> ArmSummary {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in result.discarded.iter().chain(&result.failed) {
        *reasons.entry(reason).or_default() += 1;
    }
    let median = |metric: Metric| {
        median::median(&result.values(metric), Level::P95).map(|estimate| quantity(estimate, metric.unit()))
    };
    ArmSummary {
        name: arm.name.clone(),
        title: arm.title.clone(),
        role: match arm.role {
            Role::Baseline => ArmRole::Baseline,
            Role::Fix => ArmRole::Fix,
            Role::Sham => ArmRole::Sham,
            Role::Rival => ArmRole::Rival,
            Role::Warm => ArmRole::Warm,
        },
        samples_ms: result.samples(Metric::Wall),
        median: median(Metric::Wall),
        cpu_samples_ms: result.samples(Metric::Cpu),
        cpu: median(Metric::Cpu),
        minor_faults: median(Metric::MinorFaults),
        peak_rss: median(Metric::PeakRss),
        bytes_read: median(Metric::BytesRead),
        discarded: u32::try_from(result.discarded.len()).unwrap_or(u32::MAX),
        failed: u32::try_from(result.failed.len()).unwrap_or(u32::MAX),
        discard_reasons: reasons.into_iter().map(|(reason, count)| format!("{count} x {reason}")).collect(),
    }
}

/// The judgement of an arm by `metric`. `fix` names the fix that it is, `predicted` is the change that was predicted.
pub fn verdict(
    arm: &Arm,
    fix: Option<&str>,
    judgement: &Judgement,
    metric: Metric,
    predicted: Option<Quantity>,
) -> Verdict {
    let outcome = judgement.outcome;
    let effect = &judgement.effect;
    Verdict {
        arm: arm.name.clone(),
        fix: fix.map(str::to_owned),
        judged_by: Some(metric),
        outcome,
        decision: (arm.role == Role::Fix).then_some(Decision::of(outcome)),
        predicted,
        measured: effect.difference.map(|estimate| quantity(estimate, metric.unit())),
        minimum_detectable_effect: effect.minimum_detectable_effect.map(|value| Quantity::exact(value, metric.unit())),
        pairs: u32::try_from(effect.pairs).unwrap_or(u32::MAX),
        discarded: u32::try_from(effect.dropped).unwrap_or(u32::MAX),
        reason: judgement.reason.clone(),
        beside: Vec::new(),
    }
}

/// The verdict on a fix that was not launched in blocks, and why it was not. `metric` is what would decide.
pub fn not_tried(
    arm: &str,
    fix: Option<&str>,
    metric: Metric,
    predicted: Option<Quantity>,
    why: impl Into<String>,
) -> Verdict {
    Verdict {
        arm: arm.to_owned(),
        fix: fix.map(str::to_owned),
        judged_by: Some(metric),
        outcome: Outcome::NotTestable,
        decision: Some(Decision::NotTried),
        predicted,
        measured: None,
        minimum_detectable_effect: None,
        pairs: 0,
        discarded: 0,
        reason: why.into(),
        beside: Vec::new(),
    }
}
