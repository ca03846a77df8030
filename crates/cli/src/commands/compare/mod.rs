//! `slowpath compare`: what changed between two recordings, or two sets of recordings, of one workload.

mod sets;

use crate::arguments::CompareArguments;
use crate::commands::{analyze, invoker, print_json};
use crate::failure::Failure;
use crate::unprivileged::as_user;
use slowpath_analysis::recorded_costs::recorded_costs;
use slowpath_report::terminal::{self, Style};
use slowpath_report::{Compared, RecordingComparison, compare_recordings};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let comparison = as_user(&invoker()?, || compared(arguments))?;
    if arguments.json {
        print_json(&comparison);
    } else {
        print!("{}", terminal::recording_comparison(&comparison, &Style::detect(std::io::stdout().is_terminal())));
    }
    Ok(ExitCode::SUCCESS)
}

fn compared(arguments: &CompareArguments) -> Result<RecordingComparison, Failure> {
    let of_side =
        |one: &Option<PathBuf>, more: &[PathBuf]| -> Vec<PathBuf> { one.iter().chain(more).cloned().collect() };
    let before = sets::recordings(&of_side(&arguments.before, &arguments.more_before))?;
    let after = sets::recordings(&of_side(&arguments.after, &arguments.more_after))?;
    sets::each_once(&before, &after)?;
    // One after the other: what is kept of a recording is small beside its tables.
    let read = |directories: &[PathBuf]| directories.iter().map(|one| costs(one)).collect::<Result<Vec<_>, _>>();
    Ok(compare_recordings(&read(&before)?, &read(&after)?, arguments.per_second))
}

fn costs(directory: &Path) -> Result<Compared, Failure> {
    let tables = analyze::open(directory)?;
    Ok(Compared { recording: directory.to_string_lossy().into_owned(), costs: recorded_costs(&tables) })
}
