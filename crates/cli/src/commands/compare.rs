//! `slowpath compare`: what changed between two recordings, or two sets of recordings, of one workload.

use crate::arguments::compare::CompareArguments;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_report::progress::Progress;
use slowpath_report::terminal::{self, escape_terminal};
use slowpath_report::{compare_directories, markdown};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let page = arguments.output.as_deref();
    let side = |one: &Option<PathBuf>, more: &[PathBuf]| one.iter().chain(more).cloned().collect::<Vec<_>>();
    let before = side(&arguments.before, &arguments.more_before);
    let after = side(&arguments.after, &arguments.more_after);
    let comparison = as_user(&invoker()?, &Work::writing("comparing the recordings", page), || {
        let progress = Progress::new(arguments.quiet);
        let compared = compare_directories([&before, &after], arguments.per_second, page, &progress);
        progress.done();
        compared
    })?;
    if arguments.markdown {
        print!("{}", markdown::of_comparison(&comparison));
    } else {
        show(arguments.json, &comparison, terminal::recording_comparison);
    }
    if let Some(page) = page {
        eprintln!("slowpath: the page of the comparison is {}", escape_terminal(&page.to_string_lossy()));
    }
    Ok(ExitCode::SUCCESS)
}
