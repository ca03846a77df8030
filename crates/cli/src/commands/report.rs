//! `slowpath report`: one self-contained HTML page of a recording or a diagnosis.

use crate::arguments::ReportArguments;
use crate::failure::Failure;
use slowpath_report::{html_file, progress::Progress, terminal::escape_terminal};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let what = Work::writing("writing the report", arguments.output.as_path());
    as_user(&invoker()?, &what, || {
        html_file::of_directory(&arguments.directory, &arguments.output, &Progress::new(true))
    })?;
    eprintln!("slowpath: the report is {}", escape_terminal(&arguments.output.to_string_lossy()));
    Ok(ExitCode::SUCCESS)
}
