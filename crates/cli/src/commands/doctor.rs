//! `slowpath doctor`: what works here, what does not, why, and what would change that.

use crate::arguments::DoctorArguments;
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_ipc::trace;
use slowpath_report::terminal::{self, escape_terminal};
use slowpath_verify::doctor::{Doctor, Leftovers};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let left = match arguments.clean {
        true => Leftovers::cleaned(trace::clean()),
        false => Leftovers::here(trace::leftovers()),
    };
    let doctor = Doctor::of_machine(left);
    show(arguments.json, &doctor, |shown, _| terminal::doctor(shown));
    Ok(all_removed(&doctor.not_removed))
}

/// The exit code of a cleaning, after a word on what it left. No failure: what was found and removed is printed besides.
pub fn all_removed(not_removed: &[String]) -> ExitCode {
    for leftover in not_removed {
        eprintln!("slowpath: could not be removed: {}", escape_terminal(leftover));
    }
    if not_removed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(Kind::Machine as u8) }
}
