//! Probe `fault`: page faults with address, duration and kind.

use crate::decode::Context;
use crate::events::{FLAG_KERNEL, FLAG_MAJOR, FLAG_NO_START, fault_event, record};
use slowpath_tables::{Fault, FaultKind, Nanos};

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<Fault> {
    let event: fault_event = record(bytes)?;
    let flags = u32::from(event.header.flags);
    let process = context.process(event.header.pid);
    Some(Fault {
        ts: Nanos(event.header.ts),
        duration: (flags & FLAG_NO_START == 0).then_some(Nanos(event.duration)),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        address: event.address,
        ip: event.ip,
        kind: if flags & FLAG_MAJOR != 0 { FaultKind::Major } else { FaultKind::Minor },
        kernel: flags & FLAG_KERNEL != 0,
    })
}
