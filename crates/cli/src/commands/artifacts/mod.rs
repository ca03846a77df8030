//! `slowpath artifacts`: compiled and cached artifacts that a user cannot use.

mod age;
mod guard;

use crate::arguments::artifacts::{ArtifactsArguments, ArtifactsAuditArguments, ArtifactsCommand};
use crate::failure::Failure;
use crate::printing::show;
use slowpath_diagnose::artifact_audit::{AuditSubject, AuditWanted, audit};
use slowpath_report::{progress::Progress, terminal::artifacts_audit};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ArtifactsArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        ArtifactsCommand::Audit(arguments) => run_audit(arguments),
        ArtifactsCommand::Age(arguments) => age::run(arguments),
        ArtifactsCommand::Guard(arguments) => guard::run(arguments),
    }
}

fn run_audit(arguments: &ArtifactsAuditArguments) -> Result<ExitCode, Failure> {
    let subject = match (&arguments.listing, &arguments.recording, arguments.pid) {
        (Some(listing), ..) => AuditSubject::Listing(listing.clone()),
        (None, Some(recording), _) => AuditSubject::Recording(recording.clone()),
        (None, None, Some(pid)) => AuditSubject::Process(pid),
        (None, None, None) => AuditSubject::Paths(arguments.paths.clone()),
    };
    let wanted = AuditWanted { subject, user: arguments.user.clone(), most_entries: arguments.max_entries };
    let progress = Progress::new(arguments.quiet || arguments.json);
    let audited = audit(&wanted, &progress, &|text| eprintln!("slowpath: {text}"))?;
    show(arguments.json, &audited, |audited, _| artifacts_audit(audited));
    Ok(ExitCode::SUCCESS)
}
