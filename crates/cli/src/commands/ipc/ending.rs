//! How a measurement of transports ends when it fails, is interrupted or lacks its transport. Leaves the choice of transports to `chosen`.

use crate::failure::{Failure, Kind};
use slowpath_ipc::transport::{IpcError, choice::NotHere};
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

/// Ends a command whose transport does not work here.
pub fn not_here(missing: NotHere) -> Failure {
    Failure::unavailable(&format!("use the transport {}", missing.transport.name), &[missing.gap])
        .hint("`slowpath ipc doctor` lists the transports")
}
