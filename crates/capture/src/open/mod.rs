//! Probe `open`: attempts to open a file, with their result.

use crate::context::Context;
use crate::events::{open_event, record, text};
use slowpath_tables::{Nanos, Open};

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<Open> {
    let event: open_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    let opened = event.ino != 0;
    Some(Open {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        path: text(&event.path),
        flags: event.open_flags,
        result: event.result,
        dev: opened.then_some(event.dev),
        ino: opened.then_some(event.ino),
    })
}
