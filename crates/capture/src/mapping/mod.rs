//! Probe `mapping`: what exec laid out, what mmap added and munmap took away.

use crate::context::Context;
use crate::events::{MAPPING_EXEC, MAPPING_MAP, mapping_event, record};
use slowpath_tables::{Bytes, Mapping, MappingOp, Nanos};

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<Mapping> {
    let event: mapping_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    let file = event.ino != 0;
    Some(Mapping {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        op: match event.op {
            MAPPING_EXEC => MappingOp::Exec,
            MAPPING_MAP => MappingOp::Map,
            _ => MappingOp::Unmap,
        },
        address: event.address,
        length: Bytes(event.length),
        prot: event.prot,
        dev: file.then_some(event.dev),
        ino: file.then_some(event.ino),
        offset: Bytes(event.offset),
    })
}
