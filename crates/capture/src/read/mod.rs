//! Probe `read`: read-like system calls on regular files.

use crate::context::Context;
use crate::events::{read_event, record};
use slowpath_tables::{Bytes, Nanos, Read};

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
