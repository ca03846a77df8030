//! Probe `fault`: page faults with address, duration and kind, and with their call stacks where those are asked for.

use crate::context::Context;
use crate::events::EVENT_FAULT;
use crate::events::{FAULT_FLAG_BITS, FLAG_KERNEL, FLAG_MAJOR, FLAG_NO_START, fault_event, fault_record, record};
use crate::kernel_events::FAULT_ENTRY;
use crate::probe::Probe;
use crate::records::RecordKind;
use crate::stack::Stacks;
use slowpath_tables::{Fault, FaultKind, Nanos};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "fault",
    title: "page faults",
    what: "Each page fault with its address, duration, whether it needed I/O, and its call stack where those are asked for.",
    price: "some 14 % of a fault's time, 21 to 31 % with a call stack of few functions; a deep one can take longer than its fault, and column \
        recording says how long",
    is_essential: true,
    has_stacks: |options| options.stacks.faults,
    is_replaced: |section, options, _| section.starts_with(FAULT_ENTRY) && !options.fault_entry,
    records: &[RecordKind {
        events: |bytes| record::<fault_event>(bytes).map_or(1, |batch| u64::from(batch.count)),
        ..RecordKind::of::<fault_event>(EVENT_FAULT, "faults", |bytes, to| {
            to.out.faults.extend(decode(bytes, to.context, to.stacks));
        })
    }],
    ..Probe::USUAL
};

/// The faults of one batch.
pub(crate) fn decode(bytes: &[u8], context: &Context, stacks: &Stacks) -> impl Iterator<Item = Fault> {
    let batch: Option<fault_event> = record(bytes);
    batch
        .into_iter()
        .flat_map(|batch| batch.faults.into_iter().take(batch.count as usize))
        .map(|fault| row(&fault, context, stacks))
}

const _: () = assert!((FLAG_MAJOR | FLAG_KERNEL | FLAG_NO_START) >> FAULT_FLAG_BITS == 0);

fn row(fault: &fault_record, context: &Context, stacks: &Stacks) -> Fault {
    let process = context.process(fault.pid, Nanos(fault.ts));
    let has = |flag: u32| fault.duration_and_flags & u64::from(flag) != 0;
    Fault {
        ts: Nanos(fault.ts),
        duration: (!has(FLAG_NO_START)).then_some(Nanos(fault.duration_and_flags >> FAULT_FLAG_BITS)),
        pid: process.pid,
        start: process.start,
        tid: fault.tid,
        address: fault.address,
        ip: fault.ip,
        kind: if has(FLAG_MAJOR) { FaultKind::Major } else { FaultKind::Minor },
        kernel: has(FLAG_KERNEL),
        stack: stacks.user(fault.stack),
        recording: (fault.recording > 0).then_some(Nanos(fault.recording.into())),
    }
}
