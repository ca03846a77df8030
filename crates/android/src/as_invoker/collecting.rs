//! Evidence from a device.

use super::{Client, check_names, of_adb, usual_device};
use crate::adb::{Adb, Asked, collect};
use crate::evidence::EvidenceManifest;
use serde::{Deserialize, Serialize};
use slowpath_session::failure::Failure;
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, interrupt, output_directory};
use std::path::{Path, PathBuf};

/// What collecting gave, and why it ended early.
#[derive(Debug, Serialize, Deserialize)]
pub struct Collected {
    /// What was collected.
    pub manifest: EvidenceManifest,
    /// Why no more was.
    pub failure: Option<Failure>,
}

/// Collects the evidence of packages into a directory that is new or empty; the second value is its whole name.
///
/// # Errors
/// A name is none, there is no device, or nothing can be written.
pub fn collect_evidence(
    client: &Client,
    packages: &[String],
    output: &Path,
    progress: &dyn Progress,
) -> Result<(Collected, PathBuf), Failure> {
    check_names(packages)?;
    let identity = invoker()?;
    let directory = output_directory::prepare(output, &identity)?;
    let collected = as_user(&identity, &Work::starting_programs("collecting"), || {
        let wanted = || !interrupt::requested();
        let adb = client.connect(usual_device(), &wanted)?;
        let collected = collected(&adb, &directory, packages, progress);
        progress.done();
        collected
    })?;
    Ok((collected, directory))
}

/// Collects, by whoever this process is.
pub(super) fn collected(
    adb: &Adb<'_>,
    directory: &Path,
    packages: &[String],
    progress: &dyn Progress,
) -> Result<Collected, Failure> {
    let asked = Asked { packages, now: now_rfc3339(), progress: &mut |what: &str| progress.step(what) };
    let (manifest, ended) = collect(adb, directory, asked).map_err(|error| of_adb(&error))?;
    Ok(Collected { manifest, failure: ended.map(|error| of_adb(&error)) })
}
