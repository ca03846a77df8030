//! What the recordings of cold launches show. They are read as the target's user.

use super::plans::FIX;
use super::prediction::Predicted;
use super::training::LAB_DEVICE_BYTES;
use crate::directory::{COLD, NEEDED};
use serde::{Deserialize, Serialize};
use slowpath_analysis::Finding;
use slowpath_analysis::printed::looked_for::{self, LookedFor};
use slowpath_analysis::printed::time_spent::{Condition, TimeSpent, of_tables as time_spent_of};
use slowpath_recording::Tables;
use slowpath_session::Progress;
use slowpath_session::failure::Failure;
use slowpath_session::open_recording::open;
use slowpath_session::target::Target;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::{Losses, PageCacheOp, Unavailable};
use std::path::Path;

/// What the recordings show.
#[derive(Serialize, Deserialize)]
pub struct ShownByRecordings {
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// What the cold launch was searched for.
    pub looked_for: LookedFor,
    /// Where the time of the cold launch went.
    pub time: Option<TimeSpent>,
    /// Events lost.
    pub losses: Losses,
    /// What could not be recorded.
    pub unavailable: Vec<Unavailable>,
    /// The page-cache rows beside the block layer's counter, in words.
    pub cross_check: Option<String>,
}

impl ShownByRecordings {
    /// Whether a fix for cold launches answers a finding.
    pub fn asks_for_a_fix(&self) -> bool {
        self.findings.iter().any(is_answered)
    }
}

fn is_answered(finding: &Finding) -> bool {
    finding.fixes.iter().any(|fix| fix == FIX)
}

/// Reads the recordings of the directory.
pub fn found(
    target: &Target,
    directory: &Path,
    predicted: Option<&Predicted>,
    progress: &dyn Progress,
) -> Result<ShownByRecordings, Failure> {
    progress.step("explaining the cold launch");
    as_user(&target.identity, &Work::reading("explaining the cold launch"), || {
        let cold = open(&directory.join(COLD), |text| progress.warn(text))?;
        let needed = open(&directory.join(NEEDED), |text| progress.warn(text))?;
        let (mut findings, looked_for) = looked_for::search(&cold, Some(&needed), Condition::Cold);
        for finding in findings.iter_mut().filter(|finding| is_answered(finding)) {
            finding.predicted_saving = predicted.map(|predicted| -predicted.change);
        }
        let cross_check = cross_check(&cold);
        let mut losses = cold.manifest.losses.clone();
        losses.merge(&needed.manifest.losses);
        let mut unavailable = cold.manifest.unavailable.clone();
        let time = time_spent_of(&cold, Condition::Cold, &mut unavailable);
        Ok(ShownByRecordings { findings, looked_for, time, losses, unavailable, cross_check })
    })
}

/// The page-cache rows of the cold recording against the block layer's counter of the same device.
fn cross_check(cold: &Tables) -> Option<String> {
    let counted = *cold.manifest.counters.get(LAB_DEVICE_BYTES)? as f64;
    let lab = cold.manifest.devices.iter().find(|device| device.lab)?.dev;
    let added = cold
        .page_cache
        .iter()
        .filter(|row| row.op == PageCacheOp::Add && row.dev == lab)
        .map(|row| row.pages.bytes().0 as f64)
        .sum::<f64>();
    Some(format!(
        "cross-check: {:.2} MB entered the page cache from the lab's device, the block layer counted {:.2} MB ({:+.2} %)",
        added / 1e6,
        counted / 1e6,
        (added / counted - 1.0) * 100.0
    ))
}
