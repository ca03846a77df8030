//! Why there is no trace.
//!
//! Stands below what follows the target, so that all of that fails with one error. Leaves what a user reads of it, and what would help,
//! to [`crate::traced`]; a trace that ended early is none of these errors and says so itself.

use std::io;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Somebody else traces the target; a process has one tracer.
    #[error("process {pid} is already traced by process {by}, and a process can have one tracer")]
    AlreadyTraced {
        /// The target.
        pid: i32,
        /// Its tracer.
        by: i32,
    },
    /// The machine does not allow it.
    #[error("process {pid} cannot be traced")]
    Refused {
        /// The target.
        pid: i32,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The reader has gone or is mute.
    #[error("the process that reads the target's files does not answer")]
    Reader(#[source] io::Error),
    /// ptrace(2) or wait(2) failed in a way that is no target's doing.
    #[error("tracing failed: {call}")]
    Call {
        /// Which call.
        call: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The command was never started.
    #[error("the command was not started")]
    NotStarted,
    /// A defect of ours.
    #[error("the tracing thread has crashed")]
    Crashed,
}
