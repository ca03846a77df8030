//! An arm's launches and a judgement in the form that is printed, for cold and warm diagnoses alike.

use crate::printed::{ArmRole, ArmSummary, Decision, Verdict};
use slowpath_experiment::{Effect, Level, median};
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
        lacks_children: result.missing_children(Metric::Cpu).is_some(),
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
    let change = |effect: &Effect| effect.difference.map(|estimate| quantity(estimate, metric.unit()));
    Verdict {
        arm: arm.name.clone(),
        fix: fix.map(str::to_owned),
        judged_by: Some(metric),
        outcome,
        decision: (arm.role == Role::Fix).then_some(Decision::of(outcome)),
        predicted,
        measured: change(effect),
        against_sham: judgement.against_sham.as_ref().and_then(change),
        interval_level: effect.difference.map(|_| effect.level),
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
        against_sham: None,
        interval_level: None,
        minimum_detectable_effect: None,
        pairs: 0,
        discarded: 0,
        reason: why.into(),
        beside: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_experiment::Estimate;
    use slowpath_tables::Unit;

    fn effect(value: f64) -> Effect {
        Effect {
            difference: Some(Estimate { value, low: Some(value - 20.0), high: Some(value + 20.0) }),
            ratio: None,
            baseline: None,
            treated: None,
            pairs: 12,
            dropped: 0,
            minimum_detectable_effect: None,
            sigma: None,
            level: 0.95,
        }
    }

    #[test]
    fn a_verdict_on_a_fix_states_its_change_against_the_baseline_and_against_the_sham() {
        let arm = Arm { name: "plan".to_owned(), title: "a plan".to_owned(), role: Role::Fix, sham: None };
        let mut judgement = Judgement {
            arm: 1,
            effect: effect(-300.0),
            against_sham: Some(effect(-310.0)),
            outcome: Outcome::Helps,
            share: None,
            reason: String::new(),
        };
        let judged = |judgement: &Judgement| verdict(&arm, Some("plan"), judgement, Metric::Wall, None);
        let with = judged(&judgement);
        assert_eq!(with.measured, Some(Quantity::interval(-300.0, -320.0, -280.0, Unit::Ms)));
        assert_eq!(with.against_sham, Some(Quantity::interval(-310.0, -330.0, -290.0, Unit::Ms)));
        assert_eq!(judged(&judgement).interval_level, Some(0.95));
        judgement.against_sham = None;
        let mut json = serde_json::to_value(judged(&judgement)).unwrap();
        assert!(json["against_sham"].is_null(), "{json}");
        // A file of an older version does not have it.
        json.as_object_mut().unwrap().remove("against_sham").unwrap();
        assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), judged(&judgement));
    }
}
