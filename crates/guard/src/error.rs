//! Why a start could not be checked at all, and with which exit code a command says so.

use crate::policy::PolicyFileError;
use slowpath_process::WorkerError;

/// Why a start could not be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// There is no policy that may be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// This machine does not show what is needed.
    #[error("the artifacts cannot be looked at: {0}")]
    Machine(String),
    /// The process that looks for root has no result.
    #[error("the artifacts cannot be looked at")]
    Worker(#[from] WorkerError),
}

impl GuardError {
    /// The exit code of a command that fails with it: 2 the policy, 3 the machine.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Policy(_) => 2,
            Self::Machine(_) | Self::Worker(_) => 3,
        }
    }
}
