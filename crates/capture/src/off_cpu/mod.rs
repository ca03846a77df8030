//! Probe `off_cpu`: intervals in which threads did not run, why, and who woke them; and the kernel's account of each thread
//! where its intervals begin and end.

use crate::context::Context;
use crate::events::{EVENT_OFF_CPU, EVENT_THREAD_COUNTERS, THREAD_NAME_BYTES};
use crate::events::{
    FLAG_COUNTERS_AT_END, OFF_CHILD, OFF_FAULT_IO, OFF_FUTEX, OFF_OTHER_IO, OFF_PIPE_OR_SOCKET, OFF_POLL, OFF_RUNNABLE,
    OFF_STOLEN, OFF_STOPPED, OFF_THROTTLED, OFF_TIMER, off_cpu_event, record, text, thread_counters_event,
};
use crate::probe::Probe;
use crate::records::{RecordKind, Text};
use crate::stack::Stacks;
use libbpf_rs::Btf;
use libbpf_rs::btf::types::Struct;
use slowpath_tables::missing::declared;
use slowpath_tables::{Nanos, OffCpu, OffCpuReason, ThreadCounters, Unavailable};
use std::mem::offset_of;

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "off_cpu",
    title: "time off the CPU",
    what: "Each interval in which a thread did not run, why, and who woke it; and the kernel's account of each thread where its intervals \
           begin and end.",
    asked_for: "`--off-cpu`, `--stacks wait`",
    price: "up to about 0.2 us at each context switch of the machine, with its wake-up",
    is_wanted: |options| options.waits && !options.processes_only,
    has_stacks: |options| options.stacks.waits,
    settings: Some(|btf, _, _| crate::interrupts::Layout::of(btf).bytes()),
    end_walk: Some("end_waits"),
    records: &[
        RecordKind::of::<off_cpu_event>(EVENT_OFF_CPU, "off_cpu", |bytes, to| {
            to.out.off_cpu.extend(decode(bytes, to.context, to.stacks));
        }),
        RecordKind::of::<thread_counters_event>(EVENT_THREAD_COUNTERS, "thread_counters", |bytes, to| {
            to.out.thread_counters.extend(decode_counters(bytes, to.context));
        })
        .with_texts(&[Text::ended(offset_of!(thread_counters_event, name), THREAD_NAME_BYTES)])
        .reported_once(),
    ],
    tracepoints: &[(&declared::WAIT_EVENTS, &["sched_switch", "sched_waking"])],
    ..Probe::USUAL
};

fn reason(code: u32) -> OffCpuReason {
    match code {
        OFF_FAULT_IO => OffCpuReason::FaultIo,
        OFF_OTHER_IO => OffCpuReason::OtherIo,
        OFF_FUTEX => OffCpuReason::Futex,
        OFF_PIPE_OR_SOCKET => OffCpuReason::PipeOrSocket,
        OFF_POLL => OffCpuReason::Poll,
        OFF_TIMER => OffCpuReason::Timer,
        OFF_CHILD => OffCpuReason::Child,
        OFF_RUNNABLE => OffCpuReason::Runnable,
        OFF_THROTTLED => OffCpuReason::Throttled,
        OFF_STOPPED => OffCpuReason::Stopped,
        OFF_STOLEN => OffCpuReason::Stolen,
        _ => OffCpuReason::Kernel,
    }
}

/// One interval.
pub(crate) fn decode(bytes: &[u8], context: &Context, stacks: &Stacks) -> Option<OffCpu> {
    let event: off_cpu_event = record(bytes)?;
    let begin = event.header.ts;
    let process = context.process(event.header.pid, Nanos(begin));
    let waker = (event.waker_tid != 0).then_some((event.waker_pid, event.waker_tid));
    Some(OffCpu {
        ts: Nanos(begin),
        duration: Nanos(event.duration),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        reason: reason(event.reason),
        runnable: Nanos(event.runnable),
        woken: (event.woken != 0).then_some(Nanos(event.woken)),
        waker_pid: waker.map(|(pid, _)| pid),
        waker_tid: waker.map(|(_, tid)| tid),
        syscall: event.syscall,
        stack: stacks.user(event.header.stack),
    })
}

/// `NOT_KEPT` of events.h.
const NOT_KEPT: u64 = u64::MAX;

/// The account of one thread.
pub(crate) fn decode_counters(bytes: &[u8], context: &Context) -> Option<ThreadCounters> {
    let event: thread_counters_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    Some(ThreadCounters {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        name: text(&event.name),
        end: u32::from(event.header.flags) & FLAG_COUNTERS_AT_END != 0,
        run_time: Nanos(event.run_time),
        utime: Nanos(event.utime),
        stime: Nanos(event.stime),
        run_delay: (event.run_delay != NOT_KEPT).then_some(Nanos(event.run_delay)),
    })
}

/// What a machine lets one know about time that its hypervisor took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stealing {
    /// Whether a hypervisor runs this machine, as far as it shows.
    pub(crate) is_guest: bool,
    /// Whether the kernel keeps stolen time apart on its run queues.
    pub(crate) is_kept: bool,
    /// Stolen ticks since boot.
    pub(crate) ticks: u64,
}

impl Stealing {
    /// Looks at this machine.
    pub(crate) fn here(btf: &Btf<'_>) -> Self {
        let queue = btf.type_by_name::<Struct<'_>>("rq");
        let kept =
            |queue: Struct<'_>| queue.iter().any(|one| one.name.is_some_and(|name| name == "prev_steal_time_rq"));
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            is_guest: read("/proc/cpuinfo")
                .lines()
                .any(|line| line.starts_with("flags") && line.contains(" hypervisor")),
            is_kept: queue.is_some_and(kept),
            ticks: stolen_ticks(&read("/proc/stat")),
        }
    }

    /// Why stolen time cannot be determined, if it cannot.
    pub(crate) fn gap(self) -> Option<Unavailable> {
        let (reason, remedy) = match self {
            Self { is_guest: false, .. } => return None,
            Self { is_kept: false, .. } => {
                ("this kernel does not keep stolen time", "a kernel with CONFIG_PARAVIRT_TIME_ACCOUNTING=y")
            }
            Self { ticks: 0, .. } => (
                "the hypervisor has reported no steal time since boot",
                "ask the provider whether the host reports steal time",
            ),
            _ => return None,
        };
        Some(declared::STOLEN_TIME.because(reason, remedy))
    }
}

/// Stolen time of all CPUs in ticks: the eighth number of the first line (proc_stat(5)).
fn stolen_ticks(stat: &str) -> u64 {
    let numbers = stat.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1);
    numbers.clone().nth(7).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{OFF_KERNEL, bytes_of, event_header};

    fn event(duration: u64, runnable: u64, reason: u32, waker: u32) -> Vec<u8> {
        bytes_of(&off_cpu_event {
            header: event_header { ts: 100, pid: 7, tid: 8, ..Default::default() },
            duration,
            runnable,
            woken: u64::from(waker) * 100,
            reason,
            waker_pid: waker,
            waker_tid: waker,
            syscall: 202,
        })
    }

    fn row(bytes: &[u8]) -> OffCpu {
        decode(bytes, &Context::default(), &Stacks::default()).unwrap()
    }

    #[test]
    fn an_interval_that_nobody_ended_has_no_waker() {
        let woken = row(&event(2000, 1150, OFF_FUTEX, 9));
        assert_eq!((woken.duration, woken.runnable, woken.waker_tid), (Nanos(2000), Nanos(1150), Some(9)));
        assert_eq!(woken.woken, Some(Nanos(900)));
        let not_woken = row(&event(900, 5, OFF_FUTEX, 0));
        assert_eq!((not_woken.waker_pid, not_woken.woken), (None, None));
    }

    #[test]
    fn a_delay_that_the_kernel_does_not_keep_is_unknown() {
        let account = |run_delay: u64, flags: u32| {
            let header = event_header { ts: 9, pid: 7, tid: 8, flags: flags as u16, ..Default::default() };
            let mut event = thread_counters_event { header, run_time: 5, run_delay, ..Default::default() };
            event.name[0] = b'w' as std::os::raw::c_char;
            decode_counters(&bytes_of(&event), &Context::default()).unwrap()
        };
        let row = account(3, FLAG_COUNTERS_AT_END);
        assert_eq!((row.run_delay, row.end, row.run_time, row.name.as_str()), (Some(Nanos(3)), true, Nanos(5), "w"));
        let row = account(NOT_KEPT, 0);
        assert_eq!((row.run_delay, row.end), (None, false));
    }

    #[test]
    fn every_code_has_its_word_and_unknown_ones_are_of_the_kernel() {
        let words: std::collections::BTreeSet<_> =
            (0..=OFF_STOLEN).map(|code| format!("{:?}", row(&event(1, 0, code, 0)).reason)).collect();
        assert_eq!(words.len(), 12);
        assert_eq!(row(&event(1, 0, 77, 0)).reason, row(&event(1, 0, OFF_KERNEL, 0)).reason);
    }

    #[test]
    fn stolen_time_is_missed_only_in_a_guest() {
        let guest =
            Stealing { is_guest: true, is_kept: true, ticks: stolen_ticks("cpu  1 2 3 4 5 6 7 80 9 0\ncpu0 1\n") };
        assert_eq!(guest.ticks, 80);
        assert_eq!(guest.gap(), None);
        assert_eq!(Stealing { is_guest: false, is_kept: false, ticks: 0 }.gap(), None);
        assert!(Stealing { ticks: stolen_ticks(""), ..guest }.gap().unwrap().reason.contains("no steal time"));
        assert!(Stealing { is_kept: false, ..guest }.gap().unwrap().remedy.contains("PARAVIRT_TIME"));
    }
}
