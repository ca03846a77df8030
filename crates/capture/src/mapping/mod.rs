//! Probe `mapping`: what exec laid out, what mmap added and munmap took away.

use crate::context::Context;
use crate::events::EVENT_MAPPING;
use crate::events::{MAPPING_EXEC, MAPPING_MAP, mapping_event, record};
use crate::kernel_events::{is_at_tree, is_replaced_by_tree};
use crate::probe::Probe;
use crate::records::RecordKind;
use slowpath_tables::{Bytes, Mapping, MappingOp, Nanos};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "mapping",
    title: "mappings of address spaces",
    what: "What exec laid out, what mmap added and munmap took away: which file a fault was in.",
    walks_areas: true,
    is_replaced: |section, options, kernel| {
        // Where stacks are recorded, `code_area` reports what the tree reports.
        let is_reported_by_code = kernel.tells_area_tree && options.walks_stacks() && is_at_tree(section);
        is_replaced_by_tree(section, kernel) || is_reported_by_code
    },
    records: &[RecordKind::of::<mapping_event>(EVENT_MAPPING, "mappings", |bytes, to| {
        to.out.mappings.extend(decode(bytes, to.context));
    })
    .reported_once()],
    ..Probe::USUAL
};

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
