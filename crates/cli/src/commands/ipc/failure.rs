//! How a measurement of transports fails or ends early, and transports that are not here.

use crate::failure::{Failure, Kind};
use slowpath_ipc::transport::choice::{Asked, NotHere, chosen};
use slowpath_ipc::transport::{IpcError, Transport};
use slowpath_tables::Unavailable;
use std::process::ExitCode;

/// Ends a command that was interrupted and printed what it has.
pub fn interrupted() -> ExitCode {
    eprintln!("slowpath: interrupted; the figures are of what was measured before");
    ExitCode::from(Kind::Interrupted as u8)
}

/// Ends one that has nothing to print.
pub fn too_little() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted").hint("nothing is printed: too little was measured for an interval")
}

/// A failure of the library, by what it means for the caller.
pub fn ipc_failure(error: IpcError) -> Failure {
    let kind = match &error {
        IpcError::Interrupted => return too_little(),
        IpcError::Usage(_) => Kind::Usage,
        IpcError::Corrupted { .. } => Kind::Check,
        IpcError::System { .. } | IpcError::Connect { .. } | IpcError::Died { .. } => Kind::Machine,
    };
    Failure::from_error(kind, &error).hint_if_any(error.remedy())
}

pub fn not_here(missing: NotHere) -> Failure {
    Failure::unavailable(&format!("use the transport {}", missing.transport.name), &[missing.gap])
        .hint("`slowpath ipc doctor` lists the transports")
}

pub fn transports(asked: &[Asked]) -> Result<(Vec<&'static Transport>, Vec<Unavailable>), Failure> {
    chosen(asked).map_err(not_here)
}

/// Says on standard error what is not available.
pub fn say_gaps(gaps: &[Unavailable]) {
    slowpath_report::ipc::gaps(gaps).lines().for_each(|line| eprintln!("slowpath: {line}"));
}
