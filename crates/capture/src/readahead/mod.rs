//! Probe `readahead`: what the kernel decided to read ahead.

use crate::context::Context;
use crate::events::{READAHEAD_ASYNC, READAHEAD_ORDER, READAHEAD_SYNC, readahead_event, record};
use slowpath_tables::{Nanos, Pages, Readahead};

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<Readahead> {
    let event: readahead_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    Some(Readahead {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        dev: event.dev,
        ino: event.ino,
        page: Pages(event.page),
        pages: Pages(event.pages),
        kind: match event.path {
            READAHEAD_ORDER => "order",
            READAHEAD_SYNC => "sync",
            READAHEAD_ASYNC => "async",
            _ => "unbounded",
        }
        .to_owned(),
    })
}
