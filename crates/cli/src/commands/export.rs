//! `slowpath export`: a recording in another tool's format.

use crate::arguments::{ExportArguments, Format};
use crate::commands::analyze;
use crate::failure::{Failure, Kind};
use crate::unprivileged::as_user;
use slowpath_report::perfetto;
use slowpath_report::terminal::escape_terminal;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let notes = as_user(&super::invoker()?, || {
        let tables = analyze::open(&arguments.recording)?;
        let export = match arguments.to {
            Format::Perfetto => perfetto::export(&tables),
        };
        std::fs::write(&arguments.output, &export.trace).map_err(|error| {
            Failure::new(Kind::Usage, format!("{} cannot be written: {error}", arguments.output.display()))
        })?;
        Ok(export.notes)
    })?;
    for note in notes {
        eprintln!("slowpath: note: {}", escape_terminal(&note));
    }
    let output = escape_terminal(&arguments.output.to_string_lossy());
    eprintln!("slowpath: open {output} in https://ui.perfetto.dev");
    Ok(ExitCode::SUCCESS)
}
