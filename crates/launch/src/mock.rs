//! The outcome of a launch that was none, for the unit tests of other crates.

use crate::{LaunchOutcome, StopReason};

/// A pid that no process has: above the largest, 2^22.
const NO_PID: i32 = 4_194_305;

/// An outcome that was ready after `nanos` ns, for tests to change.
pub fn ready_after(nanos: u64) -> LaunchOutcome {
    let released_at = 1_000_000_000;
    LaunchOutcome {
        pid: NO_PID,
        released_at,
        ready_at: Some(released_at + nanos),
        resolution: 0,
        stop: StopReason::Ready,
        exit: None,
        usage: None,
        first_thread: None,
        groups: None,
        memory: Vec::new(),
        stdout_tail: None,
        stderr_tail: None,
        url: None,
        left_out: Vec::new(),
    }
}
