//! `slowpath ipc`: transports measured. It runs as whoever calls it: nothing is launched for another user, and real-time
//! priority is used where the caller may have it.

mod compare;
pub mod doctor;
mod latency;
mod latency_text;
mod pool;
mod throughput;

use crate::arguments::{IpcArguments, IpcCommand, Transports};
use crate::failure::{Failure, Kind};
use crate::interrupt;
use slowpath_ipc::transport::{ALL, IpcError, Transport};
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::{Quantity, Unavailable};
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
    let failure = Failure::from_error(kind, &error);
    match error.remedy() {
        Some(remedy) => failure.hint(remedy),
        None => failure,
    }
}

/// Fails when a transport that was asked for by name does not work here.
fn available(transport: &'static Transport) -> Result<&'static Transport, Failure> {
    (transport.check)()
        .map(|()| transport)
        .map_err(|gap| Failure::unavailable(&format!("use the transport {}", transport.name), &[gap]))
        .map_err(|failure| failure.hint("`slowpath ipc doctor` lists the transports"))
}

/// The transports that were asked for, each once, and of "all" what does not work here.
fn chosen(asked: &[Transports]) -> Result<(Vec<&'static Transport>, Vec<Unavailable>), Failure> {
    let mut list: Vec<&'static Transport> = Vec::new();
    let mut gaps = Vec::new();
    for one in asked {
        let more = match one {
            Transports::One(transport) => vec![available(transport)?],
            Transports::All => {
                let (works, not): (Vec<_>, Vec<_>) =
                    ALL.iter().map(|transport| (transport.check)().map(|()| *transport)).partition(Result::is_ok);
                gaps.extend(not.into_iter().filter_map(Result::err));
                works.into_iter().flatten().collect()
            }
        };
        for transport in more {
            if !list.iter().any(|listed| std::ptr::eq(*listed, transport)) {
                list.push(transport);
            }
        }
    }
    Ok((list, gaps))
}

/// Says on standard error what is not available.
fn say_gaps(gaps: &[Unavailable]) {
    for gap in gaps {
        eprintln!("slowpath: {} is unavailable: {} (remedy: {})", gap.what, escape_terminal(&gap.reason), gap.remedy);
    }
}

/// A quantity with its interval, without its unit.
fn figure(quantity: &Quantity) -> String {
    match (quantity.low, quantity.high) {
        (Some(low), Some(high)) => format!("{:.3} ({low:.3} to {high:.3})", quantity.value),
        _ => format!("{:.3}", quantity.value),
    }
}
