//! `slowpath ipc`: transports measured. It runs as whoever calls it: nothing is launched for another user, and real-time
//! priority is used where the caller may have it. Arguments, output and exit codes; all else is `slowpath_ipc`'s, and the text of a
//! terminal `slowpath_report::ipc`'s.

mod compare;
mod doctor;
mod latency;
mod pool;
mod throughput;

use crate::arguments::ipc::{IpcArguments, IpcCommand};
use crate::failure::{Failure, Kind};
use crate::interrupt;
use slowpath_ipc::transport::choice::{Asked, NotHere, chosen};
use slowpath_ipc::transport::{IpcError, Transport};
use slowpath_tables::Unavailable;
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

/// Ends a command that was interrupted and printed what it has.
fn interrupted() -> ExitCode {
    eprintln!("slowpath: interrupted; the figures are of what was measured before");
    ExitCode::from(Kind::Interrupted as u8)
}

/// Ends one that has nothing to print.
fn too_little() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted").hint("nothing is printed: too little was measured for an interval")
}

/// A failure of the library, by what it means for the caller.
fn ipc_failure(error: IpcError) -> Failure {
    let kind = match &error {
        IpcError::Interrupted => return too_little(),
        IpcError::Usage(_) => Kind::Usage,
        IpcError::Corrupted { .. } => Kind::Check,
        IpcError::System { .. } | IpcError::Connect { .. } | IpcError::Died { .. } => Kind::Machine,
    };
    Failure::from_error(kind, &error).hint_if_any(error.remedy())
}

fn not_here(missing: NotHere) -> Failure {
    Failure::unavailable(&format!("use the transport {}", missing.transport.name), &[missing.gap])
        .hint("`slowpath ipc doctor` lists the transports")
}

fn transports(asked: &[Asked]) -> Result<(Vec<&'static Transport>, Vec<Unavailable>), Failure> {
    chosen(asked).map_err(not_here)
}

/// Says on standard error what is not available.
fn say_gaps(gaps: &[Unavailable]) {
    slowpath_report::ipc::gaps(gaps).lines().for_each(|line| eprintln!("slowpath: {line}"));
}
