//! `slowpath android`: compiled code of apps that their isolated processes cannot read. As whom, and in which sandbox, is
//! `slowpath_android::as_invoker`'s.

mod context;
mod launch;

use crate::arguments::android::{AndroidArguments, AndroidAuditArguments, AndroidCollectArguments, AndroidCommand};
use crate::failure::{self, Failure};
use crate::printing::show;
use slowpath_android::as_invoker::{Client, audit_evidence, collect_evidence, repair, write_policy};
use slowpath_android::audit::AndroidAudit;
use slowpath_report::progress::Progress;
use slowpath_report::terminal::{android_audit, android_collected, android_repaired};
use slowpath_session::interrupt;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &AndroidArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    match &arguments.command {
        AndroidCommand::Collect(arguments) => run_collect(arguments),
        AndroidCommand::Audit(arguments) => run_audit(arguments),
        AndroidCommand::Context(arguments) => context::run(arguments),
        AndroidCommand::Launch(arguments) => launch::run(arguments),
    }
}

fn run_collect(arguments: &AndroidCollectArguments) -> Result<ExitCode, Failure> {
    let progress = Progress::new(arguments.quiet || arguments.json);
    let (collected, directory) =
        collect_evidence(&Client::from(&arguments.adb), &arguments.packages, &arguments.output, &progress)?;
    let shown = directory.to_string_lossy();
    show(arguments.json, &collected.manifest, |manifest, _| android_collected(manifest, &shown));
    Ok(collected.failure.map_or(ExitCode::SUCCESS, |failure| {
        failure::report(&failure.hint(format!("what was collected is kept in {shown}")), false)
    }))
}

fn run_audit(arguments: &AndroidAuditArguments) -> Result<ExitCode, Failure> {
    let audited = audit_evidence(&arguments.evidence, &arguments.package, &arguments.trace)?;
    if let Some(file) = &arguments.guard_policy {
        write_policy(&audited, file)?;
    }
    if let (Some(name), Some(after)) = (&arguments.apply, &arguments.output) {
        return run_repair(arguments, audited, Some(name.as_str()).filter(|name| !name.is_empty()), after);
    }
    show(arguments.json, &audited, |audited, _| android_audit(audited));
    Ok(ExitCode::SUCCESS)
}

fn run_repair(
    arguments: &AndroidAuditArguments,
    before: AndroidAudit,
    name: Option<&str>,
    after: &Path,
) -> Result<ExitCode, Failure> {
    let progress = Progress::new(arguments.quiet || arguments.json);
    let (repair, failure) = repair(&Client::from(&arguments.adb), before, name, after, &progress)?;
    show(arguments.json, &repair, |repair, _| android_repaired(&repair.applied) + &android_audit(&repair.after));
    Ok(match failure {
        Some(failure) => failure::report(&failure, false),
        None => ExitCode::from(u8::from(!repair.is_all_fine())),
    })
}
