//! Probe `block`: requests to block devices with their latency.

use crate::events::EVENT_BLOCK;
use crate::events::{FLAG_IN_TREE, FLAG_IS_READ, block_event, record};
use crate::probe::Probe;
use crate::records::RecordKind;
use slowpath_tables::missing::declared;
use slowpath_tables::{BlockIo, Bytes, Nanos};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "block",
    title: "requests to block devices",
    what: "Each request to a block device with its latency, also those of others: they keep the device busy.",
    records: &[RecordKind::of::<block_event>(EVENT_BLOCK, "block_io", |bytes, to| {
        to.out.block_io.extend(decode(bytes))
    })],
    tracepoints: &[(&declared::BLOCK_IO, &["block_rq_issue", "block_rq_complete"])],
    ..Probe::USUAL
};

pub(crate) fn decode(bytes: &[u8]) -> Option<BlockIo> {
    let event: block_event = record(bytes)?;
    let flags = u32::from(event.header.flags);
    Some(BlockIo {
        ts: Nanos(event.header.ts),
        latency: Some(Nanos(event.latency)),
        dev: event.dev,
        sector: event.sector,
        bytes: Bytes(event.bytes),
        read: flags & FLAG_IS_READ != 0,
        pid: event.header.pid,
        in_tree: flags & FLAG_IN_TREE != 0,
    })
}
