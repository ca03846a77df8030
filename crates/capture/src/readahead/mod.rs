//! Probe `readahead`: what the kernel decided to read ahead.

use crate::context::Context;
use crate::events::EVENT_READAHEAD;
use crate::events::{READAHEAD_ASYNC, READAHEAD_ORDER, READAHEAD_SYNC, readahead_event, record};
use crate::probe::Probe;
use crate::records::RecordKind;
use slowpath_tables::missing::declared;
use slowpath_tables::{Nanos, Pages, Readahead};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "readahead",
    title: "decisions of readahead",
    what: "What the kernel decided to read ahead, for whom, and why.",
    records: &[RecordKind::of::<readahead_event>(EVENT_READAHEAD, "readaheads", |bytes, to| {
        to.out.readaheads.extend(decode(bytes, to.context));
    })],
    tracepoints: &[(&declared::BLOCK_IO, &["page_cache_ra_unbounded", "page_cache_ra_order", "page_cache_sync_ra"])],
    ..Probe::USUAL
};

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
