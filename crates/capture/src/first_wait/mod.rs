//! Probe `first_wait`: when a process waited for something to happen for the first time.

use crate::decode::Context;
use crate::events::{first_wait_event, record, task_state};
use slowpath_tables::{Exit, FirstWait, Nanos};

pub(crate) fn decode(bytes: &[u8], context: &mut Context) -> Option<FirstWait> {
    let event: first_wait_event = record(bytes)?;
    context.learn(event.header.pid, Nanos(event.start));
    Some(FirstWait {
        ts: Nanos(event.header.ts),
        pid: event.header.pid,
        start: Nanos(event.start),
        waited: Nanos(event.waited),
        syscall: event.syscall,
        command_line: crate::process::joined(&event.command_line, event.command_line_length),
    })
}

/// The first wait of a process that is still in it, from what the kernel keeps for its main thread (`state`). `None` when it
/// does not wait, or was told of before.
pub(crate) fn of_survivor(survivor: &Exit, state: &[u8], now: Nanos) -> Option<FirstWait> {
    let state: task_state = record(state)?;
    let began = if state.first_wait > 0 { state.first_wait } else { state.waits_since };
    if survivor.pid != survivor.tid || state.wait_is_told > 0 || began == 0 {
        return None;
    }
    let waited = if state.first_wait > 0 { Nanos(state.waited) } else { Nanos(now.0.saturating_sub(began)) };
    // As the probe itself: shorter waits are those of threads for each other.
    (waited.0 >= 1_000_000).then(|| FirstWait {
        ts: Nanos(began),
        pid: survivor.pid,
        start: survivor.start,
        waited,
        syscall: state.wait_call,
        command_line: std::fs::read(format!("/proc/{}/cmdline", survivor.pid))
            .map(|bytes| crate::process::joined_bytes(&bytes))
            .unwrap_or_default(),
    })
}
