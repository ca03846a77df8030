//! `slowpath lab`: private cold starts by hand.

use crate::arguments::{LabArguments, LabCommand, LabRunArguments};
use crate::command_target;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_report::progress::Progress;
use slowpath_report::terminal::{lab_launches, lab_list};
use slowpath_session::interrupt;
use slowpath_session::target::PATIENCE;
use slowpath_verify::doctor::Leftovers;
use slowpath_verify::lab_launches::{self as launches, Labs};
use slowpath_verify::lab_session;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &LabArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        LabCommand::Run(arguments) => launch(arguments),
        LabCommand::List { json } => list(*json),
        LabCommand::Remove => remove(),
    }
}

fn launch(arguments: &LabRunArguments) -> Result<ExitCode, Failure> {
    lab_session::require("run a lab", true)?;
    interrupt::watch();
    let target = command_target::of(&arguments.target.invocation, &arguments.target.command, Some(PATIENCE))?;
    let progress = Progress::new(arguments.quiet);
    let launched = launches::run(&target, arguments.device.settings(), arguments.runs, &progress)?;
    progress.done();
    show(arguments.json, &launched, |launched, _| lab_launches(launched));
    if !arguments.json && !arguments.quiet {
        for condition in &launched.conditions {
            eprintln!("  {condition}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let labs = Labs::here();
    if labs.labs.is_empty() && !json {
        eprintln!("slowpath: there are no labs");
    }
    show(json, &labs, |labs, _| lab_list(labs));
    Ok(ExitCode::SUCCESS)
}

fn remove() -> Result<ExitCode, Failure> {
    let left = Leftovers::of_labs();
    left.removed.iter().for_each(|path| println!("removed {path}"));
    Ok(super::doctor::all_removed(&left.not_removed))
}
