//! Probe `memory_work`: what the kernel does to have free and huge pages.
//!
//! Owns the rows. What the kernel's own threads cost is read by [`crate::memory_threads`], and whose fault that is reported by `analysis`.

use crate::context::Context;
use crate::events::EVENT_MEMORY_WORK;
use crate::events::{
    FLAG_IN_TREE, FLAG_SUCCEEDED, WORK_DIRECT_COMPACTION, WORK_DIRECT_RECLAIM, WORK_GROUP_RECLAIM,
    WORK_KHUGEPAGED_COLLAPSE, WORK_KHUGEPAGED_SCAN, WORK_OWN_COLLAPSE, WORK_WAKE_KCOMPACTD, WORK_WAKE_KSWAPD,
    memory_work_event, record,
};
use crate::probe::Probe;
use crate::records::RecordKind;
use slowpath_tables::missing::declared;
use slowpath_tables::{MemoryWork, MemoryWorkKind, Nanos, Pages};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "memory_work",
    title: "the kernel's work for free and huge pages",
    what: "Reclaim, compaction and collapsing into huge pages, and who caused the work of the kernel's threads.",
    settings: Some(|btf, _, _| crate::interrupts::Layout::of(btf).bytes()),
    records: &[RecordKind::of::<memory_work_event>(EVENT_MEMORY_WORK, "memory_work", |bytes, to| {
        to.out.memory_work.extend(decode(bytes, to.context));
    })],
    tracepoints: &[(
        &declared::MEMORY_WORK,
        &[
            "mm_vmscan_wakeup_kswapd",
            "mm_compaction_wakeup_kcompactd",
            "mm_vmscan_direct_reclaim_begin",
            "mm_collapse_huge_page",
        ],
    )],
    ..Probe::USUAL
};

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<MemoryWork> {
    let event: memory_work_event = record(bytes)?;
    let work = match event.work {
        WORK_DIRECT_RECLAIM => MemoryWorkKind::DirectReclaim,
        WORK_GROUP_RECLAIM => MemoryWorkKind::GroupReclaim,
        WORK_DIRECT_COMPACTION => MemoryWorkKind::DirectCompaction,
        WORK_OWN_COLLAPSE => MemoryWorkKind::OwnCollapse,
        WORK_WAKE_KSWAPD => MemoryWorkKind::WakeKswapd,
        WORK_WAKE_KCOMPACTD => MemoryWorkKind::WakeKcompactd,
        WORK_KHUGEPAGED_SCAN => MemoryWorkKind::KhugepagedScan,
        WORK_KHUGEPAGED_COLLAPSE => MemoryWorkKind::KhugepagedCollapse,
        _ => return None,
    };
    let flags = u32::from(event.header.flags);
    let in_tree = flags & FLAG_IN_TREE != 0;
    let ts = Nanos(event.header.ts);
    // A pid that is not followed may have been a followed one's.
    let start = if in_tree { context.process(event.header.pid, ts).start } else { Nanos(0) };
    Some(MemoryWork {
        ts,
        duration: (event.duration > 0).then_some(Nanos(event.duration)),
        pid: event.header.pid,
        start,
        tid: event.header.tid,
        in_tree,
        work,
        // No node is a negative number.
        node: u32::try_from(event.node).ok(),
        pages: Pages(event.pages),
        succeeded: flags & FLAG_SUCCEEDED != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EVENT_MEMORY_WORK, NO_NODE, bytes_of, event_header};

    fn event(work: u32, flags: u32) -> memory_work_event {
        let header =
            event_header { kind: EVENT_MEMORY_WORK as u16, flags: flags as u16, pid: 7, tid: 8, ts: 90, stack: 0 };
        memory_work_event { header, duration: 0, pages: 0, work, node: NO_NODE }
    }

    fn decoded(event: &memory_work_event) -> Option<MemoryWork> {
        let mut context = Context::default();
        context.learn(7, Nanos(5));
        decode(&bytes_of(event), &context)
    }

    #[test]
    fn own_work_has_a_duration_and_what_others_are_left_with_has_none() {
        let reclaim =
            memory_work_event { duration: 40, pages: 32, ..event(WORK_GROUP_RECLAIM, FLAG_IN_TREE | FLAG_SUCCEEDED) };
        let row = decoded(&reclaim).unwrap();
        assert_eq!((row.ts, row.duration, row.start), (Nanos(90), Some(Nanos(40)), Nanos(5)));
        assert_eq!(
            (row.work, row.pages, row.succeeded, row.node),
            (MemoryWorkKind::GroupReclaim, Pages(32), true, None)
        );
        let row = decoded(&memory_work_event { node: 1, ..event(WORK_WAKE_KSWAPD, 0) }).unwrap();
        assert_eq!((row.work, row.duration, row.node), (MemoryWorkKind::WakeKswapd, None, Some(1)));
    }

    #[test]
    fn a_task_that_is_not_followed_has_no_start_though_its_pid_was_followed_once() {
        let row = decoded(&event(WORK_KHUGEPAGED_COLLAPSE, 0)).unwrap();
        assert_eq!((row.in_tree, row.succeeded, row.pid, row.start), (false, false, 7, Nanos(0)));
    }

    #[test]
    fn a_work_that_nobody_knows_and_bytes_that_are_too_few_are_no_row() {
        assert_eq!(decoded(&event(77, 0)), None);
        assert_eq!(decode(&bytes_of(&event(0, 0))[..40], &Context::default()), None);
    }
}
