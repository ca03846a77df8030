//! `slowpath doctor`: what works here, what does not, why, and what would change that.

use crate::arguments::DoctorArguments;
use crate::failure::{Failure, Kind};
use crate::fresh_directory;
use crate::recorded_launch::LAB;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_capture::machine::{self, Check, Need};
use slowpath_lab::{availability, leftovers};
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::Unavailable;
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
}

/// Runs the command.
pub fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let facts = machine::facts();
    let checks = machine::checks(&facts);
    let (found, removed) = if arguments.clean { (Vec::new(), clean()?) } else { (find(), Vec::new()) };
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
    };
    if arguments.json {
        super::print_json(&doctor);
    } else {
        print(&doctor);
    }
    Ok(ExitCode::SUCCESS)
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
    let labs = leftovers::list(&[]).into_iter().filter(|trace| !trace.owner_alive).map(|trace| trace.path);
    labs.chain(fresh_directory::leftovers()).map(|path| path.display().to_string()).collect()
}

fn clean() -> Result<Vec<String>, Failure> {
    let mut removed = Vec::new();
    let labs = leftovers::clean(&[]).into_iter().map(|(trace, result)| (trace.path, result));
    let fresh = fresh_directory::leftovers().into_iter().map(|path| {
        let result = std::fs::remove_dir_all(&path);
        (path, result)
    });
    for (path, result) in labs.chain(fresh) {
        result.map_err(|error| {
            Failure::new(Kind::Machine, format!("{} could not be removed: {error}", path.display()))
                .hint("it belongs to another user: run it with sudo")
        })?;
        removed.push(path.display().to_string());
    }
    Ok(removed)
}
