//! `slowpath analyze`: the findings of a recording.

use crate::arguments::AnalyzeArguments;
use crate::failure::Failure;
use crate::printing::show_in_worker;
use slowpath_analysis::printed::Analysis;
use slowpath_recording::Tables;
use slowpath_report::terminal;
use slowpath_session::open_recording;
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use std::path::Path;
use std::process::ExitCode;

/// Opens a recording with what is whole in it; damage, and that there is no end, is said on
/// standard error.
pub fn open(directory: &Path) -> Result<Tables, Failure> {
    open_recording::open(directory, |text| eprintln!("slowpath: warning: {text}"))
}

/// Runs the command.
pub fn run(arguments: &AnalyzeArguments) -> Result<ExitCode, Failure> {
    // Of a recording of many threads it is hundreds of MB of JSON.
    as_user(&invoker()?, &Work::reading("analysing the recording").printing(), || {
        let tables = open(&arguments.recording)?;
        let needed = arguments.training.as_deref().map(open).transpose()?;
        let name = arguments.recording.to_string_lossy().into_owned();
        let analysis = Analysis::of_tables(name, &tables, needed.as_ref());
        show_in_worker(arguments.json, &analysis, terminal::analysis)?;
        // The process ends with them; to take millions of rows apart would take as long as a finding.
        std::mem::forget((tables, needed, analysis));
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}
