//! Probe `first_wait`: when a process waited for something to happen for the first time.

use crate::context::Context;
use crate::events::{EVENT_FIRST_WAIT, event_header, exit_event, first_wait_event, record, task_state};
use slowpath_tables::{FirstWait, Nanos};

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

/// The record of the first wait of a process that is still in it, from what the kernel keeps for its main thread (`state`).
/// `None` when it does not wait, or was told of before.
pub(crate) fn of_survivor(survivor: &exit_event, state: &[u8], now: Nanos) -> Option<first_wait_event> {
    let state: task_state = record(state)?;
    let (pid, tid) = (survivor.header.pid, survivor.header.tid);
    let began = if state.first_wait > 0 { state.first_wait } else { state.waits_since };
    if pid != tid || state.wait_is_told > 0 || began == 0 {
        return None;
    }
    let waited = if state.first_wait > 0 { state.waited } else { now.0.saturating_sub(began) };
    // As the probe itself: shorter waits are those of threads for each other.
    if waited < 1_000_000 {
        return None;
    }
    let mut event = first_wait_event {
        header: event_header { kind: EVENT_FIRST_WAIT as u16, pid, tid, ts: began, ..Default::default() },
        start: survivor.start,
        waited,
        syscall: state.wait_call,
        ..Default::default()
    };
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    for (slot, byte) in event.command_line.iter_mut().zip(&line) {
        *slot = *byte as std::os::raw::c_char;
    }
    event.command_line_length = line.len().min(event.command_line.len()) as u32;
    Some(event)
}
