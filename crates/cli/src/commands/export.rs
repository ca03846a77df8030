//! `slowpath export`: a recording in another tool's format.

use crate::arguments::export::ExportArguments;
use crate::failure::Failure;
use slowpath_report::progress::Progress;
use slowpath_report::recording_exports::{ExportOptions, ExportWanted, export};
use slowpath_report::terminal::escape_terminal;
use slowpath_session::target::invoker;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let wanted = ExportWanted {
        recording: &arguments.recording,
        to: arguments.to,
        options: ExportOptions { weight: arguments.weight, table: arguments.table.clone() },
        output: arguments.output.as_deref(),
    };
    let written = export(&wanted, &invoker()?, &Progress::new(arguments.quiet))?;
    for note in written.notes {
        eprintln!("slowpath: note: {}", escape_terminal(&note));
    }
    if arguments.output.is_some() {
        eprintln!("slowpath: {}", escape_terminal(&written.next));
    }
    Ok(ExitCode::SUCCESS)
}
