//! Probe `first_wait`: when a process waited for something to happen for the first time.

use crate::context::Context;
use crate::events::{COMMAND_LINE_BYTES, EVENT_FIRST_WAIT};
use crate::events::{first_wait_event, record};
use crate::probe::Probe;
use crate::records::{RecordKind, Text};
use slowpath_tables::{FirstWait, Nanos};
use std::mem::offset_of;

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "first_wait",
    title: "the end of a process's start",
    what: "When the main thread of a process waited for events for the first time: it had finished its start.",
    asked_for: "`--child-startup`",
    price: "some tens of ns at each context switch of the machine",
    is_wanted: |options| options.first_waits,
    end_walk: Some("end_first_waits"),
    records: &[RecordKind::of::<first_wait_event>(EVENT_FIRST_WAIT, "first_waits", |bytes, to| {
        to.out.first_waits.extend(decode(bytes, to.context));
    })
    .with_texts(&[Text::counted(
        offset_of!(first_wait_event, command_line),
        COMMAND_LINE_BYTES,
        offset_of!(first_wait_event, command_line_length),
    )])],
    ..Probe::USUAL
};

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
