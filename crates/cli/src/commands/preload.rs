//! `slowpath preload`: plans are made from recordings, used without privilege, and checked against the files.

use crate::arguments::{PreloadArguments, PreloadCommand};
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_diagnose::plan_files::{make_plan, read_plan};
use slowpath_fix::preload_plan::beside::run_beside;
use slowpath_fix::preload_plan::check::check;
use slowpath_fix::preload_plan::printed::{PlanChecked, PlanReplayed};
use slowpath_fix::preload_plan::replay::{ReplayLimits, replay_and_wait};
use slowpath_report::terminal::{escape_terminal, plan_checked, plan_replayed};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &PreloadArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        PreloadCommand::Plan { directories, output } => plan(directories, output),
        PreloadCommand::Run { plan, report, network, command } => {
            let limits = ReplayLimits { network: *network, ..ReplayLimits::default() };
            let Err(error) = run_beside(plan, &limits, report.as_deref(), command);
            Err(Failure::from_error(Kind::Target, &error))
        }
        PreloadCommand::Replay { plan, json } => replay_plan(plan, *json),
        PreloadCommand::Check { plan, json } => check_plan(plan, *json),
    }
}

fn plan(directories: &[PathBuf], output: &Path) -> Result<ExitCode, Failure> {
    let said = as_user(&invoker()?, &Work::writing("making the plan", output), || {
        make_plan(directories, output, |text| eprintln!("slowpath: warning: {text}"))
    })?;
    eprintln!("slowpath: {} holds: {}", escape_terminal(&output.to_string_lossy()), escape_terminal(&said));
    Ok(ExitCode::SUCCESS)
}

fn replay_plan(path: &Path, json: bool) -> Result<ExitCode, Failure> {
    let what = Work::reading("replaying the plan");
    let report = as_user(&invoker()?, &what, || Ok(replay_and_wait(&read_plan(path)?, &ReplayLimits::default())))?;
    show(json, &PlanReplayed::from(report), |printed, _| plan_replayed(&printed.report));
    Ok(ExitCode::SUCCESS)
}

fn check_plan(path: &Path, json: bool) -> Result<ExitCode, Failure> {
    let what = Work::reading("checking the plan");
    let report = as_user(&invoker()?, &what, || Ok(check(&read_plan(path)?, true)))?;
    let whole = report.unusable.is_empty();
    show(json, &PlanChecked::from(report), |printed, _| plan_checked(&printed.report));
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(Kind::Check as u8) })
}
