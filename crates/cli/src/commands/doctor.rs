//! `slowpath doctor`: what works here, what does not, why, and what would change that.

use crate::arguments::DoctorArguments;
use crate::failure::{Failure, Kind};
use crate::fresh_directory;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_capture::machine::{self, Check, Need};
use slowpath_ipc::trace;
use slowpath_lab::{availability, leftovers};
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::Unavailable;
use slowpath_verify::lab_session::LAB;
use std::path::Path;
use std::process::ExitCode;

/// What `slowpath doctor --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Doctor {
    /// `slowpath-doctor/1`.
    schema: &'static str,
    /// Release of the kernel.
    kernel: String,
    /// Whether `record` works here and now.
    can_record: bool,
    /// Whether `lab` and `diagnose` work here and now.
    can_use_lab: bool,
    /// What was looked at.
    checks: Vec<Check>,
    /// Everything that is missing, with its remedy.
    unavailable: Vec<Unavailable>,
    /// What killed slowpath processes left.
    leftovers: Vec<String>,
    /// What `--clean` removed.
    removed: Vec<String>,
    /// What `--clean` could not remove, and why.
    not_removed: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let facts = machine::facts();
    let checks = machine::checks(&facts);
    let (removed, not_removed) = if arguments.clean { clean() } else { Default::default() };
    let found = if arguments.clean { Vec::new() } else { find() };
    let lab = availability::missing();
    let can_record = machine::gaps(&checks, Need::Record).is_empty();
    let doctor = Doctor {
        schema: "slowpath-doctor/1",
        can_record,
        // What goes into a lab is seen in a recorded launch.
        can_use_lab: can_record && !lab.iter().any(|gap| gap.what == LAB),
        unavailable: checks.iter().filter_map(|check| check.gap.clone()).chain(lab).collect(),
        kernel: facts.kernel,
        checks,
        leftovers: found,
        removed,
        not_removed,
    };
    if arguments.json {
        super::print_json(&doctor);
    } else {
        print(&doctor);
    }
    Ok(all_removed(&doctor.not_removed))
}

fn print(doctor: &Doctor) {
    println!("kernel {}", doctor.kernel);
    let word = |able: bool| if able { "yes" } else { "no" };
    println!("record: {}   private cold starts: {}", word(doctor.can_record), word(doctor.can_use_lab));
    for check in doctor.checks.iter().filter(|check| check.gap.is_none()) {
        println!("  ok       {}", check.what);
    }
    if doctor.can_use_lab {
        println!("  ok       lab");
    }
    for gap in &doctor.unavailable {
        println!("  missing  {}: {}", gap.what, gap.reason);
        println!("           remedy: {}", gap.remedy);
    }
    for path in &doctor.leftovers {
        println!("  left by a killed slowpath: {} (remove with `slowpath doctor --clean`)", escape_terminal(path));
    }
    for path in &doctor.removed {
        println!("  removed {}", escape_terminal(path));
    }
}

fn find() -> Vec<String> {
    let labs = leftovers::list().into_iter().filter(|trace| !trace.owner_alive).map(|trace| trace.path);
    labs.chain(fresh_directory::leftovers()).chain(trace::leftovers()).map(|path| path.display().to_string()).collect()
}

/// What was removed, and what was not and why. One that stays keeps no other from being removed.
fn clean() -> (Vec<String>, Vec<String>) {
    let (mut removed, mut not_removed) = (Vec::new(), Vec::new());
    let labs = leftovers::clean().into_iter().map(|(trace, result)| (trace.path, result));
    for (path, result) in labs.chain(fresh_directory::clean()).chain(trace::clean()) {
        match result {
            Ok(()) => removed.push(path.display().to_string()),
            Err(error) => not_removed.push(stayed(&path, &error)),
        }
    }
    (removed, not_removed)
}

/// What is said of a leftover that was not removed.
pub fn stayed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The exit code of a cleaning, after a word on what it left. No failure: what was found and removed is printed besides.
pub fn all_removed(not_removed: &[String]) -> ExitCode {
    for leftover in not_removed {
        eprintln!("slowpath: could not be removed: {}", escape_terminal(leftover));
    }
    if not_removed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(Kind::Machine as u8) }
}
