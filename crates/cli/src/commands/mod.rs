//! One file a command.

mod analyze;
mod artifacts;
pub mod check;
mod compare;
mod context;
pub mod diagnose;
mod doctor;
mod documentation;
mod explain;
mod export;
mod fix;
mod fleet;
mod ipc;
mod lab;
pub mod launch;
mod preload;
mod record;
mod report;
#[cfg(test)]
mod schemas;

use crate::arguments::{Arguments, Command, LabCommand};
use crate::failure::Failure;
use crate::fresh_directory;
use crate::interrupt;
use crate::output_directory::unless_empty;
use crate::printing::json as print_json;
use slowpath_launch::Identity;
use std::process::ExitCode;

/// Runs the command of the command line.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if makes_something(&arguments.command) {
        // What a killed slowpath left goes with the next command. What stays is said by `doctor`.
        drop((slowpath_lab::leftovers::clean(), fresh_directory::clean()));
    }
    dispatch(arguments).map_err(|failure| if interrupt::requested() { failure.after_interrupt() } else { failure })
}

/// Whether a command makes what can be left behind.
fn makes_something(command: &Command) -> bool {
    match command {
        Command::Diagnose(_) | Command::Launch(_) | Command::Check(_) | Command::Record(_) | Command::Context(_) => {
            true
        }
        Command::Lab(arguments) => matches!(arguments.command, LabCommand::Run(_)),
        _ => false,
    }
}

fn dispatch(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Diagnose(arguments) => unless_empty(|| diagnose::run(arguments)),
        Command::Launch(arguments) => launch::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Record(arguments) => unless_empty(|| record::run(arguments)),
        Command::Analyze(arguments) => analyze::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Context(arguments) => context::run(arguments),
        Command::Ipc(arguments) => ipc::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Fix(arguments) => fix::run(arguments),
        Command::Artifacts(arguments) => artifacts::run(arguments),
        Command::Preload(arguments) => preload::run(arguments),
        Command::Lab(arguments) => lab::run(arguments),
        Command::Fleet(arguments) => fleet::run(arguments),
        Command::Completions(arguments) => documentation::completions(arguments),
        Command::Man(arguments) => documentation::man(arguments),
    }
}

/// The user whose files are read and written when no target is launched: the one who called sudo, else the caller.
fn invoker() -> Result<Identity, Failure> {
    let variables: Vec<_> = std::env::vars_os().collect();
    let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    Identity::for_invocation(None, borrowed)
        .map(|(identity, _)| identity)
        .map_err(crate::failure::failed(crate::failure::Kind::Usage))
}

/// Now, in UTC, as RFC 3339 to the second.
pub fn now_rfc3339() -> String {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
    // Civil date from days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}
