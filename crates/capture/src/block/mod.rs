//! Probe `block`: requests to block devices with their latency.

use crate::events::{FLAG_IN_TREE, FLAG_IS_READ, block_event, record};
use slowpath_tables::{BlockIo, Bytes, Nanos};

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
