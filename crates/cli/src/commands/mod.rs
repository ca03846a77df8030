//! One file a command.

mod analyze;
mod android;
mod artifacts;
mod check;
mod compare;
mod context;
mod diagnose;
mod doctor;
mod documentation;
mod explain;
mod export;
mod fix;
mod fleet;
mod import;
mod ipc;
mod lab;
mod launch;
mod layout;
mod preload;
mod query;
mod record;
mod report;
mod zygote;

use crate::arguments::artifacts::ArtifactsCommand;
use crate::arguments::zygote::ZygoteCommand;
use crate::arguments::{Arguments, Command, LabCommand};
use crate::failure::Failure;
use slowpath_session::output_directory::unless_empty;
use slowpath_session::{fresh_directory, interrupt};
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
        Command::Artifacts(arguments) => matches!(arguments.command, ArtifactsCommand::Age(_)),
        Command::Lab(arguments) => matches!(arguments.command, LabCommand::Run(_)),
        Command::Zygote(arguments) => matches!(arguments.command, ZygoteCommand::Bench(_) | ZygoteCommand::Advise(_)),
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
        Command::Import(arguments) => unless_empty(|| import::run(arguments)),
        Command::Analyze(arguments) => analyze::run(arguments),
        Command::Query(arguments) => query::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Context(arguments) => context::run(arguments),
        Command::Ipc(arguments) => unless_empty(|| ipc::run(arguments)),
        Command::Layout(arguments) => layout::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Fix(arguments) => fix::run(arguments),
        Command::Artifacts(arguments) => artifacts::run(arguments),
        Command::Android(arguments) => unless_empty(|| android::run(arguments)),
        Command::Preload(arguments) => preload::run(arguments),
        Command::Lab(arguments) => lab::run(arguments),
        Command::Fleet(arguments) => fleet::run(arguments),
        Command::Zygote(arguments) => zygote::run(arguments),
        Command::Completions(arguments) => documentation::completions(arguments),
        Command::Man(arguments) => documentation::man(arguments),
    }
}
