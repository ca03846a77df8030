//! `slowpath ipc`: transports measured. It runs as whoever calls it: nothing is launched for another user, and real-time
//! priority is used where the caller may have it. Arguments, output and exit codes; all else is `slowpath_ipc`'s, and the text of a
//! terminal `slowpath_report::ipc`'s.

mod chosen;
mod compare;
mod doctor;
mod ending;
mod latency;
mod pool;
mod throughput;

use crate::arguments::ipc::{IpcArguments, IpcCommand};
use crate::failure::Failure;
use slowpath_session::interrupt;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &IpcArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    slowpath_ipc::limits::raise();
    match &arguments.command {
        IpcCommand::Throughput(arguments) => throughput::run(arguments),
        IpcCommand::Latency(arguments) if arguments.workers.is_some() => pool::run(arguments),
        IpcCommand::Latency(arguments) => latency::run(arguments),
        IpcCommand::Compare(arguments) => compare::run(arguments),
        IpcCommand::Doctor { json } => doctor::run(*json),
    }
}
