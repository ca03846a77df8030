//! `slowpath lab`: private cold starts by hand.

use crate::arguments::{LabArguments, LabCommand, LabRunArguments, settings};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::target::{PATIENCE, Target};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_lab::leftovers;
use slowpath_report::terminal::{escape_terminal, lab_launches};
use slowpath_verify::{lab_launches as launches, lab_session};
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
    let target = Target::of(&arguments.target.invocation, arguments.target.command.clone(), Some(PATIENCE))?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    let progress = Progress::new(arguments.quiet);
    let launched = launches::run(&target, settings(&arguments.device), arguments.runs, &progress)?;
    progress.done();
    if arguments.json {
        super::print_json(&launched);
        return Ok(ExitCode::SUCCESS);
    }
    print!("{}", lab_launches(&launched));
    if !arguments.quiet {
        for condition in &launched.conditions {
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
