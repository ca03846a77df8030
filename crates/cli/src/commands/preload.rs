//! `slowpath preload`: plans are made from recordings, used without privilege, and checked against the files.

use crate::arguments::{PreloadArguments, PreloadCommand};
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::unprivileged::{Work, as_user};
use serde::Serialize;
use slowpath_analysis::merge::merge;
use slowpath_diagnose::plan_files::{trainings, write_plan};
use slowpath_fix::preload_plan::beside::run_beside;
use slowpath_fix::preload_plan::build::build;
use slowpath_fix::preload_plan::check::check;
use slowpath_fix::preload_plan::file::read;
use slowpath_fix::preload_plan::replay::{ReplayLimits, replay_and_wait};
use slowpath_fix::preload_plan::{PlanOptions, PreloadPlan, Provenance};
use slowpath_report::terminal::escape_terminal;
use std::io::BufReader;
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
    let what = Work::writing("making the plan", output);
    let said = as_user(&super::invoker()?, &what, || {
        let (demands, recordings) = trainings(directories, |text| eprintln!("slowpath: warning: {text}"))?;
        let merged = merge(&demands.iter().collect::<Vec<_>>());
        let provenance = Provenance { created: super::now_rfc3339(), command: Vec::new(), recordings };
        let built = build(&merged, &PlanOptions::default(), provenance);
        write_plan(&built.plan, output)?;
        Ok(built.plan.fix_plan("").title)
    })?;
    eprintln!("slowpath: {} holds: {}", escape_terminal(&output.to_string_lossy()), escape_terminal(&said));
    Ok(ExitCode::SUCCESS)
}

fn read_plan(path: &Path) -> Result<PreloadPlan, Failure> {
    let file = foreign_file::open(path)
        .map_err(|error| Failure::new(Kind::Usage, format!("{} cannot be read: {error}", path.display())))?;
    read(BufReader::new(file)).map_err(failed(Kind::Usage))
}

/// A library's report as the JSON of a command.
#[derive(Serialize)]
struct Printed<T> {
    schema: &'static str,
    #[serde(flatten)]
    report: T,
}

fn replay_plan(path: &Path, json: bool) -> Result<ExitCode, Failure> {
    let what = Work::reading("replaying the plan");
    let report =
        as_user(&super::invoker()?, &what, || Ok(replay_and_wait(&read_plan(path)?, &ReplayLimits::default())))?;
    if json {
        super::print_json(&Printed { schema: "slowpath-replay/1", report });
    } else {
        let time = report.arrived_ns.unwrap_or(report.elapsed_ns);
        println!("{:.1} MB in {} ranges, in memory after {:.1} ms", report.bytes.as_mb(), report.ranges, time.as_ms());
        for (reason, skipped) in &report.skipped {
            println!("  left out: {} files, {} ranges: {reason:?}", skipped.files, skipped.ranges);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check_plan(path: &Path, json: bool) -> Result<ExitCode, Failure> {
    let what = Work::reading("checking the plan");
    let report = as_user(&super::invoker()?, &what, || Ok(check(&read_plan(path)?, true)))?;
    let whole = report.unusable.is_empty();
    if json {
        super::print_json(&Printed { schema: "slowpath-plan-check/1", report });
    } else {
        println!("{} files, {:.1} of {:.1} MB usable", report.files, report.usable_bytes.as_mb(), report.bytes.as_mb());
        for file in &report.unusable {
            println!("  {}: {:?} ({:.1} MB)", escape_terminal(&file.path), file.reason, file.bytes.as_mb());
        }
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(Kind::Check as u8) })
}
