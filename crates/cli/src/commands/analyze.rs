//! `slowpath analyze`: the findings of a recording.

use crate::arguments::AnalyzeArguments;
use crate::commands::show;
use crate::failure::Failure;
use crate::unprivileged::{Work, as_user};
use slowpath_analysis::printed::Analysis;
use slowpath_recording::Tables;
use slowpath_report::terminal;
use slowpath_session::open_recording;
use std::path::Path;
use std::process::ExitCode;

/// Opens a recording with what is whole in it; damage, and that there is no end, is said on
/// standard error.
pub fn open(directory: &Path) -> Result<Tables, Failure> {
    open_recording::open(directory, |text| eprintln!("slowpath: warning: {text}"))
}

/// Runs the command.
pub fn run(arguments: &AnalyzeArguments) -> Result<ExitCode, Failure> {
    let analysis = as_user(&super::invoker()?, &Work::reading("analysing the recording"), || {
        let tables = open(&arguments.recording)?;
        let needed = arguments.training.as_deref().map(open).transpose()?;
        Ok(Analysis::of_tables(arguments.recording.to_string_lossy().into_owned(), &tables, needed.as_ref()))
    })?;
    show(arguments.json, &analysis, terminal::analysis);
    Ok(ExitCode::SUCCESS)
}
