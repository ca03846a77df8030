//! `slowpath android audit --apply`: repairs, evidence after them, and a second audit, which alone says whether they helped.

use super::{AndroidAuditArguments, audited, collected, connect, of_adb};
use crate::commands::print_json;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output_directory;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use slowpath_android::adb::{AndroidRepair, apply};
use slowpath_android::audit::AndroidAudit;
use slowpath_launch::Identity;
use slowpath_process::Duty;
use slowpath_report::terminal::{android_audit, android_repaired};
use std::path::Path;
use std::process::ExitCode;

/// Repairs and looks again.
pub(super) fn run(
    arguments: &AndroidAuditArguments,
    identity: &Identity,
    before: AndroidAudit,
    name: Option<&str>,
    after: &Path,
) -> Result<ExitCode, Failure> {
    let directory = output_directory::prepare(after, identity)?;
    let quiet = arguments.quiet || arguments.json;
    let serial = arguments.adb.serial.clone().or_else(|| before.device.serial.clone());
    let packages: Vec<String> = before.packages.iter().map(|package| package.name.clone()).collect();
    let (applied, again) = as_user(identity, &Work::new("repairing", Duty::Run), || {
        let wanted = || !interrupt::requested();
        let adb = connect(&arguments.adb, serial.as_deref(), &wanted)?;
        let progress = Progress::new(quiet);
        let applied = apply(&adb, &before, name, &mut |command| progress.step(command)).map_err(|error| of_adb(&error));
        progress.done();
        Ok((applied?, collected(&adb, &directory, &packages, quiet)?))
    })?;
    let audit = audited(identity, &directory, &packages, &[])?;
    let repair = AndroidRepair::new(before, applied, audit);
    if arguments.json {
        print_json(&repair);
    } else {
        print!("{}", android_repaired(&repair.applied));
        print!("{}", android_audit(&repair.after));
    }
    Ok(match again.failure {
        Some(failure) => failure::report(&failure, false),
        None => ExitCode::from(u8::from(!repair.is_all_fine())),
    })
}
