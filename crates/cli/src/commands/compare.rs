//! `slowpath compare`: what changed between two recordings, or two sets of recordings, of one workload.

use crate::arguments::CompareArguments;
use crate::commands::report::write_page;
use crate::commands::{analyze, invoker, now_rfc3339, show};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use slowpath_analysis::recorded_costs::recorded_costs;
use slowpath_diagnose::recording_sets as sets;
use slowpath_recording::Tables;
use slowpath_report::terminal::{self, escape_terminal};
use slowpath_report::{
    COMPARISON_PAGE_SCHEMA, Compared, ComparisonPage, FlameRecordings, RecordingComparison, compare_recordings,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let what = Work::writing("comparing the recordings", arguments.output.as_deref());
    let comparison = as_user(&invoker()?, &what, || {
        let progress = Progress::new(arguments.quiet);
        let compared = compared(arguments, &progress);
        progress.done();
        compared
    })?;
    show(arguments.json, &comparison, terminal::recording_comparison);
    if let Some(page) = &arguments.output {
        eprintln!("slowpath: the page of the comparison is {}", escape_terminal(&page.to_string_lossy()));
    }
    Ok(ExitCode::SUCCESS)
}

fn compared(arguments: &CompareArguments, progress: &Progress) -> Result<RecordingComparison, Failure> {
    let of_side =
        |one: &Option<PathBuf>, more: &[PathBuf]| -> Vec<PathBuf> { one.iter().chain(more).cloned().collect() };
    let before = sets::recordings(&of_side(&arguments.before, &arguments.more_before))?;
    let after = sets::recordings(&of_side(&arguments.after, &arguments.more_after))?;
    sets::each_once(&before, &after)?;
    // Only the page shows the stacks.
    let mut flames = arguments.output.is_some().then(FlameRecordings::default);
    let of_all = before.len() + after.len();
    let mut read = |directories: &[PathBuf], done: usize, add: fn(&mut FlameRecordings, &Tables)| {
        let one = |(index, directory): (usize, &PathBuf)| {
            progress.count("reading the recordings", done + index, of_all);
            recording(directory, flames.as_mut(), add)
        };
        // One after the other: what is kept of a recording is small beside its tables.
        directories.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()
    };
    let costs_before = read(&before, 0, FlameRecordings::add_before)?;
    let costs_after = read(&after, before.len(), FlameRecordings::add_after)?;
    let comparison = compare_recordings(&costs_before, &costs_after, arguments.per_second);
    if let (Some(flames), Some(output)) = (flames, &arguments.output) {
        progress.step("writing the page");
        let page = ComparisonPage {
            schema: COMPARISON_PAGE_SCHEMA.to_owned(),
            generated: now_rfc3339(),
            flame_graphs: flames.compared(&costs_before, &costs_after, comparison.per),
            comparison,
        };
        write_page(&page, output)?;
        return Ok(page.comparison);
    }
    Ok(comparison)
}

fn recording(
    directory: &Path,
    flames: Option<&mut FlameRecordings>,
    add: fn(&mut FlameRecordings, &Tables),
) -> Result<Compared, Failure> {
    let tables = analyze::open(directory)?;
    if let Some(flames) = flames {
        add(flames, &tables);
    }
    Ok(Compared { recording: directory.to_string_lossy().into_owned(), costs: recorded_costs(&tables) })
}
