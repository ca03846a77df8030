//! Probe `page_content`: what pages held when their memory was given back, their process ended, or recording did.
//!
//! Owns decoding, and where this kernel lets the end of a process be looked at. Looks at what processes still hold when
//! recording ends are in [`held`].

pub(crate) mod held;

use crate::context::Context;
use crate::events::EVENT_PAGE_CONTENT;
use crate::events::{LOOK_END, LOOK_EXIT, LOOK_MUNMAP, LOOK_RECORD_PAGES, page_content_event, record};
use crate::options::Options;
use crate::probe::{Loaded, Probe, SYSTEM_CALLS};
use crate::records::RecordKind;
use libbpf_rs::Btf;
use libbpf_rs::btf::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, Ptr, Typedef};
use slowpath_tables::missing::declared;
use slowpath_tables::{Bytes, LookMoment, Nanos, PAGE_SIZE, PageContent, Unavailable};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "page_content",
    title: "what pages held at their end",
    what: "Which pages were all zeros when their memory was freed, or when their process or the recording ended.",
    asked_for: "`--memory-calls`, `--stacks alloc`",
    price: "a look at the pages inside munmap and at the end of a process, in their own time",
    walks_areas: true,
    is_handed_calls: true,
    is_wanted: |options| options.memory_calls && !options.processes_only,
    // The one read-only variable: `exit_has_memory`.
    settings: Some(|_, _, kernel| u32::from(kernel.exit_has_memory).to_ne_bytes().into()),
    is_replaced: |section, _, kernel| section == AT_EXIT && !kernel.exit_has_memory,
    gap: Some(gap),
    records: &[RecordKind::of::<page_content_event>(EVENT_PAGE_CONTENT, "page_contents", |bytes, to| {
        to.out.page_contents.extend(decode(bytes, to.context));
    })],
    tracepoints: SYSTEM_CALLS,
    ..Probe::USUAL
};

/// Section of the program that looks where a process ends, whatever ends it.
pub(crate) const AT_EXIT: &str = "tp_btf/sched_process_exit";

/// Whether a process has its memory still where the kernel reports its end: since 6.16, in which the event got a second argument
/// as well (commit "exit: move and extend sched_process_exit() tracepoint"). Not where older kernels are imitated.
pub(crate) fn exit_has_memory(btf: &Btf<'_>, options: &Options) -> bool {
    let event = btf.type_by_name::<Typedef<'_>>("btf_trace_sched_process_exit");
    let pointer = event.and_then(|event| btf.type_by_id::<Ptr<'_>>(event.referenced_type_id()));
    let arguments = pointer.and_then(|pointer| btf.type_by_id::<FuncProto<'_>>(pointer.referenced_type_id()));
    // The first is the kernel's own.
    options.exit_memory && arguments.is_some_and(|arguments| arguments.iter().count() == 3)
}

/// What is not looked at where a probe was loaded without the program at the end of processes.
pub(crate) fn gap(probe: &Loaded) -> Option<Unavailable> {
    let is_gap = probe.replaced.iter().any(|section| section == AT_EXIT);
    is_gap.then(|| {
        declared::ENDED_BY_SIGNAL.because(
            "this kernel reports the end of a process only after its memory is gone",
            "a kernel of 6.16 or later; pages of processes that exit are inspected",
        )
    })
}

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<PageContent> {
    let event: page_content_event = record(bytes)?;
    let moment = match event.moment {
        LOOK_MUNMAP => LookMoment::Munmap,
        LOOK_EXIT => LookMoment::Exit,
        LOOK_END => LookMoment::End,
        _ => return None,
    };
    if event.pages > LOOK_RECORD_PAGES || !event.stride.is_multiple_of(PAGE_SIZE) {
        return None;
    }
    let asked = u64::MAX.checked_shr(u64::BITS - event.pages).unwrap_or(0);
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    Some(PageContent {
        ts: Nanos(event.header.ts),
        duration: Nanos(event.duration),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        moment,
        address: event.address,
        stride: Bytes(event.stride),
        pages: event.pages,
        present: event.present & asked,
        zero: event.zero & event.present & asked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::bytes_of;

    fn row(edit: fn(&mut page_content_event)) -> Option<PageContent> {
        let mut event =
            page_content_event { pages: 3, stride: 8192, present: 0b101, zero: 0b100, ..Default::default() };
        edit(&mut event);
        decode(&bytes_of(&event), &Context::default())
    }

    #[test]
    fn a_page_is_there_or_zero_only_where_it_was_asked_for() {
        let whole = row(|_| ()).unwrap();
        assert_eq!((whole.moment, whole.pages, whole.present, whole.zero), (LookMoment::Munmap, 3, 0b101, 0b100));
        assert_eq!(whole.present_pages().collect::<Vec<_>>(), [(0, false), (16384, true)]);
        assert_eq!(whole.range(), (0, 3 * 8192));
        let beyond = row(|event| (event.present, event.zero) = (u64::MAX, 0b1110)).unwrap();
        assert_eq!((beyond.present, beyond.zero), (0b111, 0b110));
        assert_eq!(row(|event| event.zero = 0b010).unwrap().zero, 0);
        assert_eq!(row(|event| event.pages = 0).unwrap().present, 0);
        assert_eq!(row(|event| (event.pages, event.present) = (64, u64::MAX)).unwrap().present, u64::MAX);
        assert_eq!(row(|event| event.moment = LOOK_END).unwrap().moment, LookMoment::End);
    }

    #[test]
    fn what_no_program_tells_is_none() {
        assert_eq!(row(|event| event.moment = 3), None);
        assert_eq!(row(|event| event.pages = LOOK_RECORD_PAGES + 1), None);
        assert_eq!(row(|event| event.stride = 100), None);
    }
}
