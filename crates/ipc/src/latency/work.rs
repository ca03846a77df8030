//! CPU time that is used up on purpose: background load, and what a server computes.

use crate::children::Child;
use crate::scheduling::{pin, thread_cpu_ns};
use crate::transport::IpcError;

/// Uses up CPU time of the calling thread.
pub fn burn(ns: u64) {
    let until = thread_cpu_ns() + ns;
    while thread_cpu_ns() < until {
        std::hint::spin_loop();
    }
}

/// A process of normal priority that computes until it is ended, on one CPU when `on` says so.
///
/// # Errors
/// The kernel makes no process.
pub fn hog(on: Option<usize>) -> Result<Child, IpcError> {
    Child::start(|| {
        if on.is_some_and(|cpu| pin(cpu).is_err()) {
            return 1;
        }
        loop {
            burn(1_000_000);
        }
    })
}
