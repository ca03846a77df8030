//! `slowpath lab`: private cold starts by hand.

use crate::arguments::{LabArguments, LabCommand, LabRunArguments, settings};
use crate::failure::{Failure, Kind, failed};
use crate::interrupt;
use crate::progress::Progress;
use crate::target::{Target, launcher, not_ready};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_lab::leftovers;
use slowpath_launch::{EndPolicy, StdioPolicy};
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::{Quantity, Unit};
use slowpath_verify::{cold, lab_session};
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &LabArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        LabCommand::Run(arguments) => launch(arguments),
        LabCommand::List { json } => list(*json),
        LabCommand::Remove => remove(),
    }
}

/// What `slowpath lab run --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Launched {
    /// `slowpath-lab/1`.
    schema: &'static str,
    /// Command line.
    command: Vec<String>,
    /// What differs from a launch on the host.
    conditions: Vec<String>,
    /// The launches in order.
    launches: Vec<OneLaunch>,
}

/// One launch in a lab.
#[derive(Serialize, JsonSchema)]
pub struct OneLaunch {
    /// From release of exec to ready.
    time_to_ready: Quantity,
    /// Delivered by the lab's device.
    bytes_read: Quantity,
    /// Whether it was proved cold.
    cold: bool,
    /// Why not.
    reason: Option<String>,
    /// Files of the lab that were not mounted, and why: the launch saw the host's.
    left_out: Vec<String>,
}

fn launch(arguments: &LabRunArguments) -> Result<ExitCode, Failure> {
    lab_session::require("run a lab", true)?;
    interrupt::watch();
    let target =
        Target::of(&arguments.target.invocation, arguments.target.command.clone(), Some(Duration::from_secs(60)))?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    let progress = Progress::new(arguments.quiet);
    let files = lab_session::first_look(&target, &progress)?;
    let lab = lab_session::build(&files, settings(&arguments.device), false, &progress)?;
    let mut launches = Vec::new();
    for number in 0..arguments.runs as usize {
        if interrupt::requested() {
            return Err(Failure::new(Kind::Interrupted, "interrupted"));
        }
        progress.count("cold launches", number, arguments.runs as usize);
        let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        let launched =
            cold(&lab, &mut launcher(), spec, &mut interrupt::Interruptible, None).map_err(failed(Kind::Machine))?;
        if let Some(failure) = not_ready(&launched.outcome) {
            return Err(failure);
        }
        let ms = launched.outcome.time_to_ready().unwrap_or(0) as f64 / 1e6;
        launches.push(OneLaunch {
            time_to_ready: Quantity::exact(ms, Unit::Ms),
            bytes_read: Quantity::exact(launched.io.bytes.0 as f64, Unit::Bytes),
            cold: launched.not_as_meant.is_none(),
            reason: launched.not_as_meant,
            left_out: launched.outcome.left_out.iter().map(ToString::to_string).collect(),
        });
    }
    progress.done();
    let conditions = lab.options_in_force();
    if arguments.json {
        let command = target.words();
        super::print_json(&Launched { schema: "slowpath-lab/1", command, conditions, launches });
        return Ok(ExitCode::SUCCESS);
    }
    for launch in &launches {
        let state = launch.reason.clone().unwrap_or_else(|| "cold".to_owned());
        println!(
            "{:9.1} ms to ready, {:7.1} MB read, {state}",
            launch.time_to_ready.value,
            launch.bytes_read.value / 1e6
        );
        for file in &launch.left_out {
            println!("  past the lab: {}", escape_terminal(file));
        }
    }
    if !arguments.quiet {
        for condition in conditions {
            eprintln!("  {condition}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What `slowpath lab list --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Labs {
    /// `slowpath-labs/1`.
    schema: &'static str,
    /// The labs.
    labs: Vec<OneLab>,
}

/// A lab on this machine.
#[derive(Serialize, JsonSchema)]
pub struct OneLab {
    /// Its directory or cgroup.
    path: String,
    /// Pid of the slowpath that made it.
    pid: u32,
    /// Whether that process lives.
    owner_alive: bool,
    /// Bytes of the image on disk, while its owner lives.
    bytes: Option<u64>,
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let labs: Vec<OneLab> = leftovers::list()
        .into_iter()
        .map(|trace| OneLab {
            path: trace.path.display().to_string(),
            pid: trace.pid,
            owner_alive: trace.owner_alive,
            bytes: trace.size.map(|size| size.0),
        })
        .collect();
    if json {
        super::print_json(&Labs { schema: "slowpath-labs/1", labs });
        return Ok(ExitCode::SUCCESS);
    }
    if labs.is_empty() {
        eprintln!("slowpath: there are no labs");
    }
    for lab in labs {
        let owner = if lab.owner_alive { "in use by" } else { "left by" };
        println!("{}  {owner} process {}", escape_terminal(&lab.path), lab.pid);
    }
    Ok(ExitCode::SUCCESS)
}

fn remove() -> Result<ExitCode, Failure> {
    let mut stayed = Vec::new();
    for (trace, result) in leftovers::clean() {
        match result {
            Ok(()) => println!("removed {}", escape_terminal(&trace.path.to_string_lossy())),
            Err(error) => stayed.push(super::doctor::stayed(&trace.path, &error)),
        }
    }
    Ok(super::doctor::all_removed(&stayed))
}
