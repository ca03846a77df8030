//! Probe `memory`: system calls that change an address space, with duration and result.

use crate::context::Context;
use crate::events::EVENT_MEMORY_CALL;
use crate::events::{
    CALL_BRK, CALL_MADVISE, CALL_MMAP, CALL_MREMAP, CALL_MUNMAP, CALL_PRCTL, memory_call_event, record,
};
use crate::probe::{Probe, SYSTEM_CALLS};
use crate::records::RecordKind;
use crate::stack::Stacks;
use slowpath_tables::{Bytes, MemoryCall, MemoryCallKind, Nanos};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "memory",
    title: "system calls that change address spaces",
    what: "mmap, munmap, mremap, brk, madvise and prctl with their duration and result, and their call stack where those are asked for.",
    asked_for: "`--memory-calls`, `--stacks alloc`",
    price: "that of `system_calls`, some 0.3 us for each recorded call, and some 150 ms of calibration before the start",
    is_handed_calls: true,
    is_wanted: |options| options.memory_calls && !options.processes_only,
    has_stacks: |options| options.stacks.memory_calls,
    records: &[RecordKind::of::<memory_call_event>(EVENT_MEMORY_CALL, "memory_calls", |bytes, to| {
        to.out.memory_calls.extend(decode(bytes, to.context, to.stacks));
    })],
    tracepoints: SYSTEM_CALLS,
    ..Probe::USUAL
};

/// ENOMEM (errno(3)).
const NO_MEMORY: i32 = -12;

/// The negated errno in what a call returned, else 0; addresses never reach the last page (IS_ERR_VALUE in the kernel).
fn error_in(result: i64) -> i32 {
    if (-4095..0).contains(&result) { result as i32 } else { 0 }
}

pub(crate) fn decode(bytes: &[u8], context: &Context, stacks: &Stacks) -> Option<MemoryCall> {
    let event: memory_call_event = record(bytes)?;
    let call = match event.call {
        CALL_MMAP => MemoryCallKind::Mmap,
        CALL_MUNMAP => MemoryCallKind::Munmap,
        CALL_MREMAP => MemoryCallKind::Mremap,
        CALL_BRK => MemoryCallKind::Brk,
        CALL_MADVISE => MemoryCallKind::Madvise,
        CALL_PRCTL => MemoryCallKind::Prctl,
        _ => return None,
    };
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    let mut row = MemoryCall {
        ts: Nanos(event.header.ts),
        duration: Nanos(event.duration),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        call,
        address: event.address,
        length: Bytes(event.length),
        old_length: (call == MemoryCallKind::Mremap).then_some(Bytes(event.before)),
        old_address: (call == MemoryCallKind::Mremap).then_some(event.address),
        shrinks: false,
        argument: event.argument,
        result: error_in(event.result),
        stack: stacks.user(event.header.stack),
    };
    match call {
        MemoryCallKind::Mmap | MemoryCallKind::Mremap if row.result == 0 => row.address = event.result as u64,
        MemoryCallKind::Brk => {
            // The call returns the end of the heap, whether it moved or not.
            let (asked, end) = (event.address, event.result as u64);
            row.result = if asked != 0 && asked != end { NO_MEMORY } else { 0 };
            row.address = end;
            row.length = Bytes(end.abs_diff(event.before));
            row.shrinks = end < event.before;
        }
        _ => {}
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::bytes_of;

    fn row(call: u32, address: u64, length: u64, before: u64, result: i64) -> MemoryCall {
        let event = memory_call_event { call, address, length, before, result, ..Default::default() };
        decode(&bytes_of(&event), &Context::default(), &Stacks::default()).unwrap()
    }

    #[test]
    fn the_heap_grows_shrinks_is_asked_for_and_refused() {
        let brk = |asked, before, end| {
            let row = row(CALL_BRK, asked, 0, before, end);
            (row.address, row.length.0, row.shrinks, row.result)
        };
        assert_eq!(brk(0, 0x5000, 0x5000), (0x5000, 0, false, 0));
        assert_eq!(brk(0x7000, 0x5000, 0x7000), (0x7000, 0x2000, false, 0));
        assert_eq!(brk(0x4000, 0x7000, 0x4000), (0x4000, 0x3000, true, 0));
        assert_eq!(brk(0x9000_0000, 0x4000, 0x4000), (0x4000, 0, false, -12));
    }

    #[test]
    fn a_mapping_is_named_by_where_it_came_to_be_and_a_failure_by_where_it_was_wanted() {
        assert_eq!(row(CALL_MMAP, 0, 4096, 0, 0x7f00_0000_0000).address, 0x7f00_0000_0000);
        let failed = row(CALL_MREMAP, 0x1000, 8192, 4096, -14);
        assert_eq!((failed.address, failed.result, failed.old_length), (0x1000, -14, Some(Bytes(4096))));
        let moved = row(CALL_MREMAP, 0x1000, 8192, 4096, 0x7f00_0000_0000);
        assert_eq!((moved.address, moved.old_address), (0x7f00_0000_0000, Some(0x1000)));
        let unmapped = row(CALL_MUNMAP, 0x1000, 4096, 0, 0);
        assert_eq!((unmapped.address, unmapped.old_length, unmapped.old_address), (0x1000, None, None));
    }

    #[test]
    fn a_refusal_of_huge_pages_is_reported_with_its_flag() {
        let event = memory_call_event { call: CALL_PRCTL, argument: 3, ..Default::default() };
        let row = decode(&bytes_of(&event), &Context::default(), &Stacks::default()).unwrap();
        assert_eq!((row.call, row.argument, row.address, row.result), (MemoryCallKind::Prctl, 3, 0, 0));
        assert_eq!(row.growth(), Bytes(0));
    }

    #[test]
    fn an_unknown_call_is_none() {
        let event = memory_call_event { call: 9, ..Default::default() };
        assert_eq!(decode(&bytes_of(&event), &Context::default(), &Stacks::default()), None);
    }
}
