//! From the comparison to what is printed: arms, verdicts, the share of the gap, notes.

use super::arms::{FIX, Treated};
use super::prediction::Predicted;
use super::training::{LAB_DEVICE_BYTES, Trained};
use crate::commands::analyze;
use crate::commands::diagnose::arm_summary;
use crate::commands::report::{COLD, NEEDED};
use crate::failure::{Failure, Kind, failed};
use crate::target::Target;
use slowpath_analysis::findings;
use slowpath_experiment::median;
use slowpath_lab::Settings;
use slowpath_recording::Tables;
use slowpath_report::{DIAGNOSE_SCHEMA, Diagnosis, GapShare, LaunchSummary, Verdict, quantity};
use slowpath_tables::{PageCacheOp, Unavailable, Unit};
use slowpath_verify::{Comparison, Judgement, Metric, Role, judge};
use std::path::Path;

/// Everything that is summarized.
pub struct Input<'a> {
    /// The target.
    pub target: &'a Target,
    /// Where the recordings are.
    pub directory: &'a Path,
    /// The arms.
    pub arms: &'a [Treated],
    /// Their launches.
    pub comparison: &'a Comparison,
    /// The trainings.
    pub trained: &'a Trained,
    /// The prediction.
    pub predicted: &'a Option<Predicted>,
    /// The device's settings.
    pub settings: &'a Settings,
    /// What differs from the host.
    pub conditions: Vec<String>,
    /// Why no fix was tried, where none was.
    pub untried: Option<&'a str>,
}

/// The diagnosis.
pub fn summarize(input: &Input<'_>) -> Result<Diagnosis, Failure> {
    let cold_directory = input.directory.join(COLD);
    let cold = analyze::open(&cold_directory)?;
    let needed = analyze::open(&input.directory.join(NEEDED))?;
    let predicted = input.predicted.as_ref().map(|predicted| predicted.change);
    let judged = judge(input.comparison, Metric::Wall).map_err(failed(Kind::Machine))?;
    let mut found = findings::of_recordings(&[&cold], Some(&needed));
    for finding in found.iter_mut().filter(|finding| finding.fixes.iter().any(|fix| fix == FIX)) {
        finding.predicted_saving = input.predicted.as_ref().map(|predicted| -predicted.change);
    }
    let mut losses = cold.manifest.losses.clone();
    losses.merge(&needed.manifest.losses);
    let mut unavailable = cold.manifest.unavailable.clone();
    unavailable.push(Unavailable {
        what: "a cold launch of files outside the lab".to_owned(),
        reason: "pages that other processes map stay in memory; only the lab's files are cold".to_owned(),
        remedy: "none is needed: the share read past the lab is in the notes".to_owned(),
    });
    Ok(Diagnosis {
        schema: DIAGNOSE_SCHEMA.to_owned(),
        warm: false,
        other: None,
        command: input.target.words(),
        recording: cold_directory.to_string_lossy().into_owned(),
        launch: LaunchSummary {
            ready: input.target.ready.to_string(),
            seed: input.comparison.seed,
            blocks: u32::try_from(input.comparison.blocks).unwrap_or(u32::MAX),
            conditions: input.conditions.clone(),
            judged_by: Metric::Wall,
            arms: input
                .arms
                .iter()
                .zip(&input.comparison.results)
                .map(|(treated, result)| arm_summary::arm_summary(&treated.arm, result))
                .collect(),
        },
        findings: found,
        fixes: Vec::new(),
        verdicts: judged
            .iter()
            .filter_map(|judgement| verdict(input, judgement))
            .chain(input.untried.map(|why| arm_summary::not_tried(FIX, Some(FIX), Metric::Wall, predicted, why)))
            .collect(),
        share_of_gap_removed: judged
            .iter()
            .filter_map(|judgement| {
                let share = judgement.share.as_ref()?.share?;
                let arm = input.arms[judgement.arm].arm.name.clone();
                Some(GapShare { arm, share: quantity(share, Unit::Ratio) })
            })
            .collect(),
        losses,
        unavailable,
        notes: notes(input, &cold),
    })
}

fn verdict(input: &Input<'_>, judgement: &Judgement) -> Option<Verdict> {
    let treated = &input.arms[judgement.arm];
    if treated.arm.role == Role::Warm {
        return None;
    }
    let predicted = if treated.arm.name == FIX { input.predicted.as_ref().map(|p| p.change) } else { None };
    Some(arm_summary::verdict(&treated.arm, treated.fix, judgement, Metric::Wall, predicted))
}

/// The page-cache rows of the cold recording against the block layer's counter of the same device.
fn witness(cold: &Tables) -> Option<String> {
    let counted = *cold.manifest.counters.get(LAB_DEVICE_BYTES)? as f64;
    let lab = cold.manifest.devices.iter().find(|device| device.lab)?.dev;
    let added = cold
        .page_cache
        .iter()
        .filter(|row| row.op == PageCacheOp::Add && row.dev == lab)
        .map(|row| row.pages.bytes().0 as f64)
        .sum::<f64>();
    Some(format!(
        "second witness: {:.2} MB entered the page cache from the lab's device, the block layer counted {:.2} MB ({:+.2} %)",
        added / 1e6,
        counted / 1e6,
        (added / counted - 1.0) * 100.0
    ))
}

fn notes(input: &Input<'_>, cold: &Tables) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(witness(cold));
    let trained = input.trained;
    notes.push(format!(
        "a launch needs at least {:.1} MB from storage; {:.2} % of the recorded cold launch's reads went past the lab",
        trained.needed.as_mb(),
        trained.past_lab * 100.0
    ));
    if input.untried.is_none() {
        notes.push("the plan was made from other launches than those that judge it".to_owned());
    }
    if trained.discarded > 0 {
        notes.push(format!("{} recorded launches were not cold and were repeated", trained.discarded));
    }
    if let Some(throttle) = input.settings.throttle {
        notes.push(bound(input, throttle.bytes_per_second, throttle.iops));
    }
    notes
}

/// The least time in which the device can deliver what is needed, beside what was measured.
fn bound(input: &Input<'_>, bandwidth: u64, iops: u64) -> String {
    let needed = input.trained.needed;
    if bandwidth == 0 {
        return format!("the device is limited to {iops} reads a second");
    }
    let bound_ms = needed.0 as f64 / bandwidth as f64 * 1e3;
    let measured = input.arms.iter().zip(&input.comparison.results).find(|(arm, _)| arm.arm.name == FIX).and_then(
        |(_, result)| {
            let values = result.values(Metric::Wall);
            median::point(&values)
        },
    );
    let reached = measured.map_or(String::new(), |ms| {
        format!("; with the plan a launch takes {ms:.0} ms, so the bound is {:.0} % of it", bound_ms / ms * 100.0)
    });
    format!(
        "bound: {:.1} MB needed / {:.0} MB/s = {bound_ms:.0} ms{reached}; what remains is computing that waits for the last pages, which only reading less (ordering functions, dropping relocations) shortens",
        needed.as_mb(),
        bandwidth as f64 / 1e6
    )
}
