//! From the comparison to what is printed: arms, verdicts by CPU time with the other metrics beside them, fixes, notes.

use super::recorded::ShownByRecording;
use crate::arm_summary::{arm_summary, not_tried, verdict};
use crate::blocks::Ended;
use crate::directory::WARM;
use crate::printed::{DIAGNOSE_SCHEMA, Decision, Diagnosis, LaunchSummary, MetricChange, Verdict};
use slowpath_fix::{FixPlan, Proposal};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::Target;
use slowpath_verify::printed::quantity;
use slowpath_verify::treated::warm::WarmTrial;
use slowpath_verify::{Comparison, Judgement, Metric, judge};
use std::collections::BTreeSet;
use std::path::Path;

/// What decides: a hidden cost of memory is work of the CPU, in whichever thread of the tree, and shows in the time to ready
/// only where somebody waits for it.
pub const JUDGED_BY: Metric = Metric::Cpu;
/// What stands beside it; the last is the price.
const BESIDE: [Metric; 3] = [Metric::Wall, Metric::MinorFaults, Metric::PeakRss];

/// Everything that is summarized.
pub struct Input<'a> {
    /// The target.
    pub target: &'a Target,
    /// Where the recording is.
    pub directory: &'a Path,
    /// The arms that were compared, and why others were not. What is tried has the place of its proposal.
    pub trial: &'a WarmTrial,
    /// Their launches, and how they ended; `None` where there was no fix to try.
    pub compared: Option<&'a (Comparison, Ended)>,
    /// What was found.
    pub found: &'a ShownByRecording,
    /// Seed of the order of the launches.
    pub seed: u64,
    /// What was done before the launches.
    pub conditions: Vec<String>,
    /// Why nothing was launched, where the time did not suffice.
    pub late: Option<&'a str>,
}

/// The diagnosis.
pub fn summarize(input: &Input<'_>) -> Result<Diagnosis, Failure> {
    let found = input.found;
    let arms = input.compared.into_iter().flat_map(|(compared, _)| input.trial.arms.iter().zip(&compared.results));
    let mut verdicts =
        input.compared.map(|(compared, ended)| judged(input, compared, ended)).transpose()?.unwrap_or_default();
    verdicts.extend(untried(input));
    let gaps = found.proposals.iter().filter_map(|proposal| proposal.gap.clone());
    Ok(Diagnosis {
        schema: DIAGNOSE_SCHEMA.to_owned(),
        warm: true,
        running: None,
        other: None,
        command: input.target.words(),
        recording: input.directory.join(WARM).to_string_lossy().into_owned(),
        launch: LaunchSummary {
            ready: input.target.ready.to_string(),
            seed: input.seed,
            blocks: input.compared.map_or(0, |(compared, _)| u32::try_from(compared.blocks).unwrap_or(u32::MAX)),
            conditions: conditions(input),
            judged_by: JUDGED_BY,
            error_rate: input.compared.map(|(_, ended)| ended.error_rate()),
            interval_level: input.compared.map(|(_, ended)| ended.interval_level()),
            arms: arms.map(|(arm, result)| arm_summary(&arm.arm, result)).collect(),
        },
        time: found.time.clone().into_iter().collect(),
        round_trips: found.round_trips.clone(),
        looked_for: vec![found.looked_for.clone()],
        findings: found.findings.clone(),
        shared_findings: 0,
        fixes: found.proposals.iter().map(|proposal| proposal.plan.clone()).collect(),
        notes: notes(input, &verdicts),
        verdicts,
        share_of_gap_removed: Vec::new(),
        hidden_by_root: None,
        losses: found.losses.clone(),
        unavailable: found.unavailable.iter().cloned().chain(gaps).collect(),
    })
}

/// Verdicts of the arms that were launched.
fn judged(input: &Input<'_>, compared: &Comparison, ended: &Ended) -> Result<Vec<Verdict>, Failure> {
    let judge = |metric| judge(compared, metric, |blocks| ended.level(blocks)).map_err(failed(Kind::Machine));
    let deciding = judge(JUDGED_BY)?;
    let beside: Vec<(Metric, Vec<Judgement>)> =
        BESIDE.into_iter().map(|metric| Ok((metric, judge(metric)?))).collect::<Result<_, Failure>>()?;
    let lacks_children = missing_children(compared).is_some();
    let of = |judgement: &Judgement| {
        let arm = &input.trial.arms[judgement.arm];
        let proposal = arm.tried.map(|number| &input.found.proposals[number]);
        let fix = proposal.map(|proposal| proposal.plan.fix.as_str());
        let predicted = proposal.and_then(|proposal| proposal.predicted);
        let others = beside.iter().filter_map(|(metric, judged)| {
            let other = judged.iter().find(|other| other.arm == judgement.arm)?;
            Some(MetricChange {
                metric: *metric,
                change: other.effect.difference.map(|estimate| quantity(estimate, metric.unit())),
                outcome: other.outcome,
            })
        });
        let verdict = verdict(&arm.arm, fix, judgement, JUDGED_BY, predicted);
        // What is not counted may be what the fix saves.
        let decision = verdict.decision.map(|decision| match decision {
            Decision::Withdrawn if lacks_children => Decision::NotShown,
            other => other,
        });
        Verdict { beside: others.collect(), decision, ..verdict }
    };
    Ok(deciding.iter().map(of).collect())
}

/// Why the CPU time of some arm may be too small.
fn missing_children(compared: &Comparison) -> Option<&'static str> {
    compared.results.iter().find_map(|result| result.missing_children(JUDGED_BY))
}

/// Fixes that were not launched in blocks.
fn untried(input: &Input<'_>) -> Vec<Verdict> {
    let is_launched = |number: &usize| input.trial.arms.iter().any(|arm| arm.tried == Some(*number));
    let all = input.found.proposals.iter().enumerate().filter(|(number, _)| !is_launched(number));
    let of = |(number, proposal): (usize, &Proposal)| {
        let plan = &proposal.plan;
        let why = match (input.trial.failing.get(&number), input.late) {
            (Some(reason), _) => reason.clone(),
            (None, Some(late)) if plan.trial.possible => late.to_owned(),
            (None, _) => plan.trial.how.clone(),
        };
        not_tried(&plan.name, Some(&plan.fix), JUDGED_BY, proposal.predicted, why)
    };
    all.map(of).collect()
}

fn conditions(input: &Input<'_>) -> Vec<String> {
    let mut conditions = input.conditions.clone();
    if input.compared.is_some() {
        conditions.push(
            "the environment has another size in every block, the same for all arms of it; arms differ in the values of \
             variables, or in what they see of files"
                .to_owned(),
        );
    }
    conditions
}

fn notes(input: &Input<'_>, verdicts: &[Verdict]) -> Vec<String> {
    let found = input.found;
    let mut notes: Vec<String> =
        input.trial.arms.iter().filter_map(|arm| given(&found.proposals[arm.tried?].plan)).collect();
    // A fix that is proved was heeded.
    let is_proved = |proposal: &&Proposal| {
        verdicts.iter().any(|one| one.arm == proposal.plan.name && one.decision == Some(Decision::Proved))
    };
    let doubtful = found.proposals.iter().filter(|proposal| !is_proved(proposal));
    notes.extend(doubtful.filter_map(|proposal| proposal.caution.clone()));
    if let Some((compared, ended)) = input.compared {
        notes.extend(not_wholly_warm(compared));
        notes.extend(missing_children(compared).map(str::to_owned));
        notes.extend(ended.notes.clone());
    }
    if input.compared.is_some() {
        notes.push("findings, and what fixes set, come from another launch than those that judge them".to_owned());
    }
    if !found.need_lab.is_empty() {
        let names = found.need_lab.join(", ");
        notes.push(format!("fixes that `slowpath diagnose --cold` tries, in a lab: {names}"));
    }
    notes
}

/// What the launches of a trial could use that the target cannot.
fn given(plan: &FixPlan) -> Option<String> {
    let treatment = plan.tried();
    if let Some(first) = treatment.regenerated().first() {
        return Some(format!(
            "launches of {} saw in {} what was made there for them, once, as the target's user, in mounts of their own; no file was changed",
            plan.name,
            first.path.to_os_string().to_string_lossy(),
        ));
    }
    let files = treatment.files();
    let first = files.first()?;
    let owners: BTreeSet<u32> = files.iter().map(|file| file.uid).collect();
    let owners: Vec<String> = owners.iter().map(u32::to_string).collect();
    let others = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
    Some(format!(
        "launches of {} saw {}{others} (of user {}) with the change, in mounts of their own: the target could read what it may not; \
         no file was changed",
        plan.name,
        first.path.to_os_string().to_string_lossy(),
        owners.join(", "),
    ))
}

/// A warm launch that waited for storage was not warm.
fn not_wholly_warm(compared: &Comparison) -> Option<String> {
    let launches = || compared.results.iter().flat_map(|result| result.values(Metric::MajorFaults));
    let waited = launches().filter(|faults| *faults > 0.0).count();
    (waited > 0).then(|| format!("not wholly warm: {waited} of {} launches had major faults", launches().count()))
}
