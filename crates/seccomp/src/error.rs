//! Why there is no filter.

use crate::instruction::MOST_INSTRUCTIONS;
use thiserror::Error;

/// Bytes that are no filter.
#[derive(Debug, Error)]
pub enum FilterError {
    /// A program of the kernel has 1 to [`MOST_INSTRUCTIONS`] instructions.
    #[error("a filter has 1 to {MOST_INSTRUCTIONS} instructions of 8 bytes, and this has {0} bytes")]
    Length(usize),
    /// The text is no JSON, or lacks what the form needs.
    #[error("the JSON is no filter: {0}")]
    Json(#[from] serde_json::Error),
    /// The filters of seccompiler's form do not compile.
    #[error("seccompiler does not take it as a filter: {0}")]
    Compiler(String),
    /// One file, several filters.
    #[error("the file holds {found} filters ({names}), and {asked}")]
    Several {
        /// How many.
        found: usize,
        /// Their names.
        names: String,
        /// What was asked for.
        asked: String,
    },
    /// A word that the form has and this program has not.
    #[error("the profile says {word:?}, which cannot be compiled here: {why}")]
    Unsupported {
        /// The word.
        word: String,
        /// Why not.
        why: &'static str,
    },
}

impl From<seccompiler::Error> for FilterError {
    fn from(error: seccompiler::Error) -> Self {
        Self::Compiler(error.to_string())
    }
}

impl From<seccompiler::BackendError> for FilterError {
    fn from(error: seccompiler::BackendError) -> Self {
        Self::Compiler(error.to_string())
    }
}

/// Why the filters of a process cannot be read.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// There is no process with this number.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It has no filter.
    #[error("process {0} has no seccomp filter")]
    NoFilter(u32),
    /// The kernel shows filters to a tracer with `CAP_SYS_ADMIN` that has none itself.
    #[error("the kernel shows the filters of process {0} only to root, outside of any filter")]
    Privilege(u32),
    /// A task has one tracer at most.
    #[error("process {0} cannot be traced: another program traces it, or a security module forbids it")]
    Traced(u32),
    /// It did not stop.
    #[error("process {0} did not stop within {1} ms")]
    Busy(u32, u128),
    /// This kernel was built without `CONFIG_CHECKPOINT_RESTORE`.
    #[error("process {0} has a filter, and this kernel does not show it (built without CONFIG_CHECKPOINT_RESTORE)")]
    NotShown(u32),
    /// The kernel refuses for a reason of its own.
    #[error("the filters of process {pid} cannot be read")]
    System {
        /// The process.
        pid: u32,
        /// The error of the call.
        #[source]
        source: std::io::Error,
    },
    /// What the kernel gave is no program.
    #[error(transparent)]
    Filter(#[from] FilterError),
}
