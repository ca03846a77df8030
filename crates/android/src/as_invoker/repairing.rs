//! Repairs, evidence after them, and a second audit, which alone says whether they helped.

use super::collecting::collected;
use super::{Client, audit_evidence, of_adb};
use crate::adb::{AndroidRepair, apply};
use crate::audit::AndroidAudit;
use slowpath_session::failure::Failure;
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, interrupt, output_directory};
use std::path::Path;

/// Repairs what an audit found by the repair of this name, else by the first of each package, and looks again into the directory `after`.
/// Where the device went away while it looked, the second value says why.
///
/// # Errors
/// There is no device, it went away before, or nothing can be written.
pub fn repair(
    client: &Client,
    before: AndroidAudit,
    name: Option<&str>,
    after: &Path,
    progress: &dyn Progress,
) -> Result<(AndroidRepair, Option<Failure>), Failure> {
    let identity = invoker()?;
    let directory = output_directory::prepare(after, &identity)?;
    let packages: Vec<String> = before.packages.iter().map(|package| package.name.clone()).collect();
    let (applied, again) = as_user(&identity, &Work::starting_programs("repairing"), || {
        let wanted = || !interrupt::requested();
        let adb = client.connect(before.device.serial.clone(), &wanted)?;
        let applied = apply(&adb, &before, name, &mut |command: &str| progress.step(command));
        let done = applied
            .map_err(|error| of_adb(&error))
            .and_then(|applied| Ok((applied, collected(&adb, &directory, &packages, progress)?)));
        progress.done();
        done
    })?;
    let audit = audit_evidence(&directory, &packages, &[])?;
    Ok((AndroidRepair::new(before, applied, audit), again.failure))
}
