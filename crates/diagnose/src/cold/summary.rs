//! From the comparison to what is printed: arms, verdicts, the share of the gap, notes.

use super::plans::Candidate;
use super::prediction::Predicted;
use super::recorded::ShownByRecordings;
use super::training::Trained;
use crate::arm_summary;
use crate::blocks::Ended;
use crate::directory::COLD;
use crate::printed::{DIAGNOSE_SCHEMA, Diagnosis, GapShare, LaunchSummary, Verdict};
use slowpath_experiment::{Level, median};
use slowpath_fix::fixes_not_made_here;
use slowpath_lab::Settings;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::Target;
use slowpath_tables::missing::declared;
use slowpath_tables::{Bytes, Quantity, Unit};
use slowpath_verify::printed::quantity;
use slowpath_verify::treated::cold::{ColdArm, ShamPlan};
use slowpath_verify::{Comparison, Judgement, Metric, Role, declared_arms, judge};
use std::path::Path;

/// What decides: a launch that waits for storage shows it in the time to ready.
pub const JUDGED_BY: Metric = Metric::Wall;

/// Everything that is summarized.
pub struct Input<'a> {
    /// The target.
    pub target: &'a Target,
    /// Where the recordings are.
    pub directory: &'a Path,
    /// The arms.
    pub arms: &'a [ColdArm],
    /// Their launches.
    pub comparison: &'a Comparison,
    /// What is tried.
    pub candidates: &'a [Candidate],
    /// The plans of its shams.
    pub shams: &'a [ShamPlan],
    /// The trainings.
    pub trained: &'a Trained,
    /// What they show.
    pub found: &'a ShownByRecordings,
    /// The prediction.
    pub predicted: Option<&'a Predicted>,
    /// The device's settings.
    pub settings: &'a Settings,
    /// What differs from the host.
    pub conditions: Vec<String>,
    /// Why no fix was tried, where none was.
    pub untried: Option<&'a str>,
    /// How the trial ended, where there was one.
    pub ended: Option<&'a Ended>,
}

/// The diagnosis.
pub fn summarize(input: &Input<'_>) -> Result<Diagnosis, Failure> {
    let level = |blocks| input.ended.map_or(Level::P95, |ended| ended.level(blocks));
    let judged = judge(input.comparison, JUDGED_BY, level).map_err(failed(Kind::Machine))?;
    let mut unavailable = input.found.unavailable.clone();
    unavailable.push(declared::PAST_THE_LAB.because(
        "pages that other processes map stay in memory; only the lab's files are cold",
        "none is needed: the share of lab misses is in the notes",
    ));
    Ok(Diagnosis {
        schema: DIAGNOSE_SCHEMA.to_owned(),
        warm: false,
        running: None,
        other: None,
        command: input.target.words(),
        recording: input.directory.join(COLD).to_string_lossy().into_owned(),
        launch: LaunchSummary {
            ready: input.target.ready.to_string(),
            seed: input.comparison.seed,
            blocks: u32::try_from(input.comparison.blocks).unwrap_or(u32::MAX),
            conditions: input.conditions.clone(),
            judged_by: JUDGED_BY,
            error_rate: input.ended.map(Ended::error_rate),
            interval_level: input.ended.map(Ended::interval_level),
            arms: input
                .arms
                .iter()
                .zip(&input.comparison.results)
                .map(|(treated, result)| arm_summary::arm_summary(&treated.arm, result))
                .collect(),
        },
        time: input.found.time.clone().into_iter().collect(),
        looked_for: vec![input.found.looked_for.clone()],
        findings: input.found.findings.clone(),
        shared_findings: 0,
        fixes: input.candidates.iter().filter_map(|candidate| candidate.plan.clone()).collect(),
        verdicts: judged.iter().filter_map(|judgement| verdict(input, judgement)).chain(untried(input)).collect(),
        round_trips: Vec::new(),
        hidden_by_root: None,
        share_of_gap_removed: judged
            .iter()
            .filter_map(|judgement| {
                let removed = judgement.share.as_ref()?;
                Some(GapShare {
                    arm: input.arms[judgement.arm].arm.name.clone(),
                    share: quantity(removed.share?, Unit::Ratio),
                    blocks: u32::try_from(removed.blocks).ok(),
                    interval_level: Some(removed.level),
                })
            })
            .collect(),
        losses: input.found.losses.clone(),
        unavailable,
        notes: notes(input),
    })
}

fn verdict(input: &Input<'_>, judgement: &Judgement) -> Option<Verdict> {
    let arm = &input.arms[judgement.arm];
    if arm.arm.role == Role::Warm {
        return None;
    }
    let candidate = arm.tried.map(|number| &input.candidates[number]);
    let fix = candidate.and_then(|candidate| candidate.fix);
    let predicted = candidate.and_then(|candidate| predicted(input, candidate));
    Some(arm_summary::verdict(&arm.arm, fix, judgement, JUDGED_BY, predicted))
}

/// Verdicts on the fixes where none was tried.
fn untried<'a>(input: &'a Input<'_>) -> impl Iterator<Item = Verdict> + 'a {
    let why = input.untried.into_iter();
    let fixes = || input.candidates.iter().filter(|candidate| candidate.fix.is_some());
    why.flat_map(move |why| {
        fixes().map(move |candidate| {
            let name = &candidate.tried.arm.name;
            arm_summary::not_tried(name, candidate.fix, JUDGED_BY, predicted(input, candidate), why)
        })
    })
}

fn predicted(input: &Input<'_>, candidate: &Candidate) -> Option<Quantity> {
    input.predicted.filter(|_| candidate.is_predicted).map(|predicted| predicted.change)
}

fn notes(input: &Input<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(input.found.cross_check.clone());
    let trained = input.trained;
    notes.push(format!(
        "a launch needs at least {:.1} MB from storage; {:.2} % of the recorded cold launch's reads missed the lab",
        trained.read.at_least.as_mb(),
        trained.misses * 100.0
    ));
    if input.untried.is_none() {
        notes.push("the plan was made from other launches than those that judge it".to_owned());
        notes.extend(input.ended.into_iter().flat_map(|ended| ended.notes.clone()));
        notes.extend(sham_reads(input));
        let missing = input.comparison.results.iter().find_map(|result| result.missing_children(Metric::Cpu));
        notes.extend(missing.map(str::to_owned));
    }
    let others = not_in_this_set(input);
    if !others.is_empty() {
        notes.push(format!("fixes that `--arms standard` tries: {}", others.join(", ")));
    }
    if trained.discarded > 0 {
        notes.push(format!("{} recorded launches were not cold and were repeated", trained.discarded));
    }
    if let Some(throttle) = input.settings.throttle {
        notes.push(bound(input, throttle.bytes_per_second, throttle.iops));
    }
    notes
}

/// Fixes for cold launches that findings name and that are not among what is tried.
fn not_in_this_set(input: &Input<'_>) -> Vec<String> {
    let is_tried = |name: &str| input.candidates.iter().any(|candidate| candidate.fix == Some(name));
    let named = fixes_not_made_here(&input.found.findings);
    named.into_iter().filter(|name| !is_tried(name)).collect()
}

/// Whether the sham that reads read what it was to, beside a cold launch.
fn sham_reads(input: &Input<'_>) -> Option<String> {
    let read = |name: &str| {
        let position = input.arms.iter().position(|treated| treated.arm.name == name)?;
        median::point(&input.comparison.results[position].values(Metric::BytesRead))
    };
    let sham = input.shams.iter().find(|sham| sham.bytes > Bytes(0))?;
    missing_reads(sham.name(), sham.bytes.as_mb(), (read(sham.name())? - read(declared_arms::COLD.name)?) / 1e6)
}

/// Said where a tenth or more of the MB is missing that a sham was to read: it was ended first, or could not read them.
fn missing_reads(sham: &str, asked: f64, read: f64) -> Option<String> {
    let read = read.max(0.0);
    (read < asked * 0.9).then(|| {
        format!(
            "{sham} read {read:.1} of {asked:.1} MB of unrelated data, so it shows less contention than a plan causes"
        )
    })
}

/// The least time in which the device can deliver what is needed, beside what was measured.
fn bound(input: &Input<'_>, bandwidth: u64, iops: u64) -> String {
    let needed = input.trained.read.at_least;
    if bandwidth == 0 {
        return format!("the device is limited to {iops} reads a second");
    }
    let bound_ms = needed.0 as f64 / bandwidth as f64 * 1e3;
    let is_the_plan = |arm: &ColdArm| arm.tried.is_some_and(|number| input.candidates[number].is_predicted);
    let measured =
        input.arms.iter().zip(&input.comparison.results).find(|(arm, _)| is_the_plan(arm)).and_then(|(_, result)| {
            let values = result.values(JUDGED_BY);
            median::point(&values)
        });
    let reached = measured.map_or(String::new(), |ms| {
        format!("; with the plan a launch takes {ms:.0} ms, so the bound is {:.0} % of it", bound_ms / ms * 100.0)
    });
    format!(
        "bound: {:.1} MB needed / {:.0} MB/s = {bound_ms:.0} ms{reached}; what remains is computing that waits for the last pages, which only reading less (ordering functions, dropping relocations) shortens",
        needed.as_mb(),
        bandwidth as f64 / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sham_that_read_a_tenth_less_than_it_was_to_is_noted() {
        assert_eq!(missing_reads("sham", 10.0, 9.0), None);
        let noted = missing_reads("sham", 10.0, 8.9).unwrap();
        assert!(noted.starts_with("sham read 8.9 of 10.0 MB of unrelated data"), "{noted}");
        assert!(missing_reads("sham", 10.0, -0.3).unwrap().contains("read 0.0 of"));
    }
}
