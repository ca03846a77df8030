//! Probe `fault`: page faults with address, duration and kind, and with their call stacks where those are asked for.

use crate::context::Context;
use crate::events::{FLAG_KERNEL, FLAG_MAJOR, FLAG_NO_START, fault_event, fault_record, record};
use crate::stack::Stacks;
use slowpath_tables::{Fault, FaultKind, Nanos};

/// The faults of one batch.
pub(crate) fn decode(bytes: &[u8], context: &Context, stacks: &Stacks) -> impl Iterator<Item = Fault> {
    let batch: Option<fault_event> = record(bytes);
    batch
        .into_iter()
        .flat_map(|batch| batch.faults.into_iter().take(batch.count as usize))
        .map(|fault| row(&fault, context, stacks))
}

fn row(fault: &fault_record, context: &Context, stacks: &Stacks) -> Fault {
    let process = context.process(fault.pid, Nanos(fault.ts));
    Fault {
        ts: Nanos(fault.ts),
        duration: (fault.flags & FLAG_NO_START == 0).then_some(Nanos(fault.duration)),
        pid: process.pid,
        start: process.start,
        tid: fault.tid,
        address: fault.address,
        ip: fault.ip,
        kind: if fault.flags & FLAG_MAJOR != 0 { FaultKind::Major } else { FaultKind::Minor },
        kernel: fault.flags & FLAG_KERNEL != 0,
        stack: stacks.user(fault.stack),
    }
}
