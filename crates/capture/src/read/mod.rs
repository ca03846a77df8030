//! Probe `read`: read-like system calls on regular files.

use crate::context::Context;
use crate::events::EVENT_READ;
use crate::events::{read_event, record};
use crate::probe::{Probe, SYSTEM_CALLS};
use crate::records::RecordKind;
use slowpath_tables::{Bytes, Nanos, Read};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "read",
    title: "reads of files",
    what: "Each read-like system call on a regular file, with its duration.",
    asked_for: "of a command always, but with `--no-files`; of processes that run already with `--files`",
    price: "that of `system_calls`, and some 0.5 us for each recorded call",
    is_handed_calls: true,
    is_wanted: |options| options.files && !options.processes_only,
    records: &[RecordKind::of::<read_event>(EVENT_READ, "reads", |bytes, to| {
        to.out.reads.extend(decode(bytes, to.context))
    })],
    tracepoints: SYSTEM_CALLS,
    ..Probe::USUAL
};

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<Read> {
    let event: read_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    Some(Read {
        ts: Nanos(event.header.ts),
        duration: Nanos(event.duration),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        dev: event.dev,
        ino: event.ino,
        offset: Bytes(event.offset),
        result: event.result,
        syscall: event.syscall,
    })
}
