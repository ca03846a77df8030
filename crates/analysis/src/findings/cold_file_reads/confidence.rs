//! How far the finding can be trusted.
//!
//! **Low** when the claim itself may be wrong:
//! - a probe of faults, page cache, mappings or processes was not available;
//! - more than [`LOSS_LOW`](crate::findings::doubts::LOSS_LOW) of the events it rests on were lost;
//! - more than [`UNRESOLVED_LOW`] of the major faults could not be measured or tied to a file;
//! - fewer than [`RECORDED_LOW`] of the kernel's faults were recorded;
//! - there was no ready event, so the whole recording counts as the launch.
//!
//! **Medium** when the size is uncertain:
//! - one launch only, or an interval wider than [`WIDTH_MEDIUM`] of the value;
//! - any loss; fewer than [`RECORDED_MEDIUM`] of the kernel's faults recorded;
//! - the probe of reads or block I/O was missing, or not asked for (`record --no-files`);
//! - which pages were needed is not known;
//! - the launch did not run in a lab, so its coldness was not made.
//!
//! **High** otherwise.

use crate::finding::Confidence;
use crate::findings::Observation;
use crate::findings::doubts::{Doubts, WIDTH_MEDIUM, width};
use crate::findings::memory_confidence::{RECORDED_LOW, RECORDED_MEDIUM};
use slowpath_recording::{NotRecorded, ProbeState};
use slowpath_tables::{FaultKind, Quantity};

/// Share of major faults without duration or file above which the claim is doubtful.
pub const UNRESOLVED_LOW: f64 = 0.05;

const ESSENTIAL_PROBES: [&str; 4] = ["fault", "page_cache", "mapping", "process"];
const USEFUL_PROBES: [&str; 2] = ["read", "block"];
const TABLES: [&str; 6] = ["faults", "page_cache", "mappings", "reads", "execs", "forks"];

/// Applies the rule.
pub(crate) fn judge(observation: &Observation<'_>, cost: &Quantity) -> Doubts {
    let mut doubts = Doubts::none();
    match observation.launches.len() {
        1 => doubts.lower(Confidence::Medium, "one launch only: no interval".to_owned()),
        _ => {
            let width = width(cost);
            if width > WIDTH_MEDIUM {
                let share = width * 100.0;
                doubts.lower(Confidence::Medium, format!("the interval is as wide as {share:.0} % of the cost"));
            }
        }
    }
    if observation.needed.is_err() {
        // The reason itself is added by the finding, which knows why need is not known.
        doubts.lower(Confidence::Medium, "the wasted share of the reads is not known");
    }
    for facts in observation.launches {
        let manifest = &facts.tables.manifest;
        if facts.ready.is_none() {
            doubts.lower(
                Confidence::Low,
                "there was no ready event: the whole recording counts as the launch".to_owned(),
            );
        }
        if !manifest.devices.iter().any(|device| device.lab) {
            doubts
                .lower(Confidence::Medium, "the launch did not run in a lab: how cold it was is not known".to_owned());
        }
        for probe in manifest.probes.iter().filter(|probe| probe.state == ProbeState::Unavailable) {
            let level = if ESSENTIAL_PROBES.contains(&probe.name.as_str()) {
                Confidence::Low
            } else if USEFUL_PROBES.contains(&probe.name.as_str()) {
                Confidence::Medium
            } else {
                continue;
            };
            doubts.lower(level, format!("probe {} was not available", probe.name));
        }
        // A recording names the probes that it was asked for.
        if !manifest.probes.is_empty() && manifest.not_recorded("read") == Some(NotRecorded::NotAskedFor) {
            doubts.lower(
                Confidence::Medium,
                "reads were not recorded (record --files, or without --no-files)".to_owned(),
            );
        }
        let tables = &facts.tables;
        let kept = tables.faults.len() + tables.page_cache.len() + tables.mappings.len() + tables.reads.len();
        doubts.of_losses(&manifest.losses, &TABLES, kept, "events");
        let major = tables.faults.iter().filter(|fault| fault.kind == FaultKind::Major).count() as u64;
        let unclear = facts.blocked.unmeasured + facts.blocked.unresolved;
        if unclear as f64 > major as f64 * UNRESOLVED_LOW {
            doubts.lower(Confidence::Low, format!("{unclear} of {major} major faults have no duration or no file"));
        }
        if let Some(share) = facts.completeness().share()
            && share < RECORDED_MEDIUM
        {
            let level = if share < RECORDED_LOW { Confidence::Low } else { Confidence::Medium };
            doubts.lower(level, format!("{:.1} % of the faults that the kernel counted were recorded", share * 100.0));
        }
    }
    doubts
}
