//! `slowpath launch children`: how long the child processes of recorded launches take until they are ready, by kind.

use crate::arguments::launch::ChildrenArguments;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_report::terminal;
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_verify::children_of_recordings::of_recordings;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ChildrenArguments) -> Result<ExitCode, Failure> {
    let children = as_user(&invoker()?, &Work::reading("reading the recordings"), || {
        of_recordings(&arguments.recordings, |text| eprintln!("slowpath: warning: {text}"))
    })?;
    show(arguments.json, &children, terminal::children);
    Ok(ExitCode::SUCCESS)
}
