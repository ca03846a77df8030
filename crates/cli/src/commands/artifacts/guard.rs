//! `slowpath artifacts guard`: what a product runs at its own start. What is looked at, decided and repaired is `slowpath_guard`'s.

use crate::arguments::artifacts::ArtifactsGuardArguments;
use crate::failure::{Failure, Kind};
use slowpath_guard::{GuardError, Options, guard};
use slowpath_report::terminal::guarded;
use std::error::Error;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ArtifactsGuardArguments) -> Result<ExitCode, Failure> {
    let options = Options { repair: arguments.repair, user: arguments.pseudonym.clone() };
    let report = guard(&arguments.policy, &options).map_err(failure)?;
    if arguments.json {
        for one in &report.lines {
            println!("{}", one.json());
        }
    } else {
        print!("{}", guarded(&report, arguments.repair));
    }
    for (artifact, why) in report.refused() {
        eprintln!("slowpath: {artifact} may not be repaired: {why}");
    }
    Ok(ExitCode::from(report.exit_code()))
}

fn failure(error: GuardError) -> Failure {
    let kind = if error.exit_code() == 2 { Kind::Usage } else { Kind::Machine };
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    Failure::new(kind, format!("{error}{cause}"))
}
