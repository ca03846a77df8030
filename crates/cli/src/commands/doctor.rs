//! `slowpath doctor`: what works here, what does not, why, and what would change that.

use crate::arguments::DoctorArguments;
use crate::commands::show;
use crate::failure::{Failure, Kind};
use crate::fresh_directory;
use slowpath_ipc::trace;
use slowpath_lab::leftovers;
use slowpath_report::terminal::{self, escape_terminal};
use slowpath_verify::doctor::{Doctor, Leftovers};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let left = match arguments.clean {
        true => clean(),
        false => Leftovers { found: find(), ..Leftovers::default() },
    };
    let doctor = Doctor::of_machine(left);
    show(arguments.json, &doctor, |shown, _| terminal::doctor(shown));
    Ok(all_removed(&doctor.not_removed))
}

fn find() -> Vec<String> {
    let labs = leftovers::list().into_iter().filter(|trace| !trace.owner_alive).map(|trace| trace.path);
    labs.chain(fresh_directory::leftovers()).chain(trace::leftovers()).map(|path| path.display().to_string()).collect()
}

/// What was removed, and what was not and why. One that stays keeps no other from being removed.
fn clean() -> Leftovers {
    let (mut removed, mut not_removed) = (Vec::new(), Vec::new());
    let labs = leftovers::clean().into_iter().map(|(trace, result)| (trace.path, result));
    for (path, result) in labs.chain(fresh_directory::clean()).chain(trace::clean()) {
        match result {
            Ok(()) => removed.push(path.display().to_string()),
            Err(error) => not_removed.push(stayed(&path, &error)),
        }
    }
    Leftovers { found: Vec::new(), removed, not_removed }
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
