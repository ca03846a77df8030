//! Probe `first_wait`: when a process waited for something to happen for the first time.

use crate::context::Context;
use crate::events::{first_wait_event, record};
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
