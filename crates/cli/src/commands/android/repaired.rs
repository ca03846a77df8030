//! `slowpath android audit --apply`: repairs, evidence after them, and a second audit, which alone says whether they helped.

use super::{AndroidAuditArguments, audited, collected, connect, of_adb};
use crate::commands::print_json;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output_directory;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_android::adb::{Applied, RepairOutcome, apply};
use slowpath_android::audit::AndroidAudit;
use slowpath_launch::Identity;
use slowpath_process::Duty;
use slowpath_report::terminal::{android_audit, android_repaired};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-android-repair/1";

/// What `slowpath android audit --apply --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AndroidRepair {
    /// `slowpath-android-repair/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The audit before.
    pub before: AndroidAudit,
    /// What was run for each package.
    pub applied: Vec<Applied>,
    /// How many packages by what became of them.
    pub counts: BTreeMap<String, u64>,
    /// The audit after.
    pub after: AndroidAudit,
}

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
    let (mut applied, again) = as_user(identity, &Work::new("repairing", Duty::Run), || {
        let wanted = || !interrupt::requested();
        let adb = connect(&arguments.adb, serial.as_deref(), &wanted)?;
        let progress = Progress::new(quiet);
        let applied = apply(&adb, &before, name, &mut |command| progress.step(command)).map_err(|error| of_adb(&error));
        progress.done();
        Ok((applied?, collected(&adb, &directory, &packages, quiet)?))
    })?;
    let audit = audited(identity, &directory, &packages, &[])?;
    for one in &mut applied {
        one.judge(&audit);
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for one in &applied {
        *counts.entry(one.outcome.name().to_owned()).or_default() += 1;
    }
    let is_fine = |one: &Applied| matches!(one.outcome, RepairOutcome::Repaired | RepairOutcome::NotNeeded);
    let is_all_fine = applied.iter().all(is_fine);
    let repair = AndroidRepair { schema: SCHEMA.to_owned(), before, applied, counts, after: audit };
    if arguments.json {
        print_json(&repair);
    } else {
        print!("{}", android_repaired(&repair.applied));
        print!("{}", android_audit(&repair.after));
    }
    Ok(match again.failure {
        Some(failure) => failure::report(&failure, false),
        None => ExitCode::from(u8::from(!is_all_fine)),
    })
}
