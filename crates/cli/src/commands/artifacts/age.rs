//! `slowpath artifacts age`: a command that finds artifacts unreadable, stale or missing, as elsewhere, in mounts of its own.

use crate::arguments::artifacts::ArtifactsAgeArguments;
use crate::arguments::target::InvocationArguments;
use crate::exit_code;
use crate::failure::Failure;
use slowpath_diagnose::aged_artifacts::{launch, require_root};
use slowpath_session::target::Target;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ArtifactsAgeArguments) -> Result<ExitCode, Failure> {
    require_root()?;
    let invocation = InvocationArguments::until_exit(&arguments.user, &arguments.env);
    let target = Target::of(&invocation, arguments.command.clone(), None)?;
    let exit = launch(&target, &arguments.state, &|text| eprintln!("slowpath: {text}"))?;
    Ok(exit_code::of_command(exit))
}
