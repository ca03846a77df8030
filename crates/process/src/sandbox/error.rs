//! Why a process was not reduced, with the step that failed.

use crate::CredentialsError;
use std::io;

/// Why a worker is not what it should be. It must end without having worked.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The identity was not taken on.
    #[error("the identity did not take effect")]
    Credentials(#[from] CredentialsError),
    /// A step was refused.
    #[error("{step} failed")]
    Refused {
        /// Which.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no filter for this machine.
    #[error("there is no filter: {0}")]
    Filter(String),
    /// The process that it was to answer is gone.
    #[error("its parent has ended")]
    Orphan,
}

/// A refusal of this step.
pub(super) fn refused<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> SandboxError {
    move |source| SandboxError::Refused { step, source: source.into() }
}
