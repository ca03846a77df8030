//! `slowpath diagnose`: record, find, fix, prove.
//!
//! The order matters for honesty: what is recorded first, then the fixes, then the prediction, which is written down before the
//! first treated launch; the launches that judge a fix are others than those that it was made from.
//!
//! Owns the words of the command line, the page and the screen; the work is `slowpath_diagnose`'s.

use crate::arguments::diagnose::DiagnoseArguments;
use crate::command_target;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_diagnose::{Case, Launches, TimeLimit, diagnose, directory, kept};
use slowpath_launch::Identity;
use slowpath_report::{Diagnosis, html_file, progress::Progress, terminal};
use slowpath_session::running::processes;
use slowpath_session::target::{PATIENCE, invoker};
use slowpath_session::{interrupt, recorded_launch};
use slowpath_verify::lab_session;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &DiagnoseArguments) -> Result<ExitCode, Failure> {
    if !arguments.pid.is_empty() {
        return of_running(arguments);
    }
    let launches = match (arguments.cold, arguments.warm) {
        (true, _) => Launches::Cold,
        (_, true) => Launches::Warm,
        _ => Launches::Both,
    };
    lab_session::require("diagnose", launches == Launches::Cold)?;
    if launches == Launches::Warm {
        recorded_launch::require_profile("diagnose")?;
    }
    interrupt::watch();
    let target = &command_target::of(&arguments.invocation, &arguments.command, Some(PATIENCE))?;
    let directory = &directory::prepare(arguments.output.as_deref(), &target.identity)?;
    let limit = TimeLimit::from_now(arguments.max_time);
    let progress = &Progress::new(arguments.quiet).until(limit.until());
    let case = Case {
        target,
        directory,
        progress,
        settings: arguments.device.settings(),
        set: arguments.arms,
        blocks: arguments.blocks,
        seed: arguments.seed,
    };
    let diagnosis = diagnose(&case, launches, &limit)?;
    finish(arguments, directory, &target.identity, &diagnosis, progress)
}

/// Diagnoses processes that run already.
fn of_running(arguments: &DiagnoseArguments) -> Result<ExitCode, Failure> {
    recorded_launch::require("diagnose", [])?;
    recorded_launch::require_profile("diagnose")?;
    let meant = processes(arguments.pid.clone())?;
    let identity = invoker()?;
    let directory = directory::prepare(arguments.output.as_deref(), &identity)?;
    let progress = Progress::new(arguments.quiet);
    let wanted = slowpath_diagnose::running::Wanted {
        meant: &meant,
        pids: &arguments.pid,
        directory: &directory,
        identity: &identity,
        duration: arguments.duration.map(Duration::from_secs_f64),
    };
    let diagnosis = slowpath_diagnose::running::diagnose(&wanted, &progress)?;
    finish(arguments, &directory, &identity, &diagnosis, &progress)
}

/// Writes the diagnosis as its user, and shows it.
fn finish(
    arguments: &DiagnoseArguments,
    directory: &Path,
    identity: &Identity,
    diagnosis: &Diagnosis,
    progress: &Progress,
) -> Result<ExitCode, Failure> {
    progress.step("writing the report");
    let page = html_file::with_diagnosis(directory, identity, diagnosis, progress)?;
    progress.done();
    show(arguments.json, diagnosis, |diagnosis, style| {
        let commands = kept::commands(directory, diagnosis);
        terminal::diagnosis_screen(diagnosis, &page.to_string_lossy(), &commands, style)
    });
    Ok(ExitCode::SUCCESS)
}
