//! Perfetto traces: the kernel's events of ftrace in them, processes and threads.
//!
//! A trace is a sequence of packets, each with its length before it; one is in memory at a time. Packets of different CPUs do not follow
//! each other in time: [`InOrder`] holds events back until those before them must have come.

mod event;
#[expect(missing_docs, reason = "fields have the names, and so the documentation, of Perfetto's definitions")]
pub mod messages;
mod programs;

use crate::declaration::Importer;
use crate::in_order::InOrder;
use crate::input::Input;
use crate::kernel_event::{Circumstances, KernelEvents};
use crate::problem::ImportError;
use crate::trace::Trace;
use crate::wait_reason::state;
use event::{Event, What};
use messages::{CLOCK_BOOTTIME, CLOCK_REALTIME, CLONE_THREAD, FtraceEventBundle, TracePacket, task, text};
use programs::{Early, Program};
use prost::Message;
use slowpath_recording::Clock;
use slowpath_tables::{Nanos, OffCpuReason, PageCacheOp};

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "perfetto",
    title: "Perfetto: the ftrace events and processes of a trace",
    made_by: "perfetto with the data source linux.ftrace (sched_switch, sched_waking, sched_blocked_reason, task_newtask, sched_process_exec, \
              sched_process_exit, mm_filemap_add_to_page_cache, block_rq_issue, block_rq_complete) and linux.process_stats",
    reads: "switches and wake-ups, processes and threads, page cache, block I/O",
    lacks: "its ftrace events have no call stack, no page fault with its address and no result of a system call",
    probes: &["block", "off_cpu", "page_cache", "process"],
    detects,
    import,
};

/// Tag of `Trace.packet`.
const PACKET: u8 = 0x0a;
/// Bytes of a packet at most; tracing services flush after some hundred KiB.
const LONGEST_PACKET: u64 = 64 << 20;

/// Events that are held back: those of some seconds of a busy phone, and less than 100 MB.
const HELD: usize = 1 << 20;

const TAG: &str = "a packet of a Perfetto trace (0x0a and its length)";
const WHOLE: &str = "as many bytes as the length of the packet says";
const MESSAGE: &str = "a TracePacket message before this byte";

fn detects(head: &[u8]) -> bool {
    let Some((length, used)) = head.strip_prefix(&[PACKET]).and_then(varint) else { return false };
    let begin = 1 + used;
    let Some(end) = begin.checked_add(usize::try_from(length).unwrap_or(usize::MAX)) else { return false };
    match head.get(begin..end) {
        Some(packet) => !packet.is_empty() && TracePacket::decode(packet).is_ok(),
        // The first packet is longer than what is here.
        None => head.len() >= crate::declaration::HEAD && length <= LONGEST_PACKET,
    }
}

/// A number of the wire format, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(at as u32 * 7)?;
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// What is known while a trace is read.
struct State {
    events: KernelEvents,
    order: InOrder<Event>,
    /// The latest time of an event so far.
    latest: u64,
    /// Programs that are known before the first event; None once it was there.
    early: Option<Early>,
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    import_holding(HELD, input, trace)
}

fn import_holding(most: usize, input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let events = KernelEvents::default();
    let mut state = State { events, order: InOrder::new(most), latest: 0, early: Some(Early::default()) };
    let read = state.packets(input, trace);
    for event in state.order.finish() {
        state.emit(trace, event)?;
    }
    if let Some((first, _)) = trace.facts.span {
        state.begin(trace, first)?;
    }
    if state.order.late > 0 {
        trace.facts.losses.add("perfetto_out_of_order.any", state.order.late);
    }
    state.events.finish(trace)?;
    read
}

/// The next packet of a trace, without its length, in place of what is in `packet`. False at the end of the trace.
///
/// # Errors
/// It cannot be read, or is no packet.
pub fn next_packet(input: &mut Input<'_>, packet: &mut Vec<u8>) -> Result<bool, ImportError> {
    if !input.next_bytes(1, TAG, packet)? {
        return Ok(false);
    }
    if packet.first() != Some(&PACKET) {
        return Err(input.wrong_bytes(TAG));
    }
    let mut length = Vec::new();
    loop {
        if !input.next_bytes(1, WHOLE, packet)? || length.len() >= 10 {
            return Err(input.wrong_bytes(TAG));
        }
        length.extend_from_slice(packet);
        if packet[0] & 0x80 == 0 {
            break;
        }
    }
    let length = varint(&length).map(|(length, _)| length).filter(|length| *length <= LONGEST_PACKET);
    let Some(length) = length else { return Err(input.wrong_bytes("a packet of at most 64 MiB")) };
    packet.clear();
    if length > 0 && !input.next_bytes(length, WHOLE, packet)? {
        return Err(input.wrong_bytes(WHOLE));
    }
    Ok(true)
}

fn about(trace: &mut Trace<'_>, packet: &TracePacket) {
    let facts = &mut trace.facts;
    if let Some(info) = &packet.system_info {
        facts.page_size = info.page_size.map(u64::from).filter(|size| size.is_power_of_two()).or(facts.page_size);
        facts.cpus = info.num_cpus.filter(|cpus| *cpus > 0).or(facts.cpus);
        if let Some(name) = &info.utsname {
            facts.kernel = name.release.clone().or(facts.kernel.take());
            facts.machine = name.machine.clone().or(facts.machine.take());
        }
    }
    if let Some(snapshot) = packet.clock_snapshot.as_ref().filter(|_| facts.clock.is_none()) {
        let of = |id| snapshot.clocks.iter().find(|clock| clock.clock_id == Some(id)).and_then(|clock| clock.timestamp);
        if let (Some(boot), Some(real)) = (of(CLOCK_BOOTTIME), of(CLOCK_REALTIME)) {
            facts.clock = Some(Clock { monotonic: Nanos(boot), realtime: i64::try_from(real).unwrap_or(i64::MAX) });
        }
    }
    if packet.compressed_packets.is_some() {
        facts.lack(
            "compressed packets",
            "they are not read",
            "record with compression_type: COMPRESSION_TYPE_UNSPECIFIED",
        );
    }
}

impl State {
    fn packets(&mut self, input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        trace.facts.lack(
            "the reasons of waits",
            "ftrace's switches have no call stack: a wait that neither the thread's state nor sched_blocked_reason explains is one in the kernel",
            "`slowpath record --off-cpu`",
        );
        let mut bytes = Vec::new();
        while next_packet(input, &mut bytes)? {
            let packet = bytes.as_slice();
            let Ok(packet) = TracePacket::decode(packet) else { return Err(input.wrong_bytes(MESSAGE)) };
            about(trace, &packet);
            self.processes(trace, &packet);
            if let Some(bundle) = packet.ftrace_events {
                self.of_bundle(trace, bundle);
            }
            for event in self.order.ready() {
                self.emit(trace, event)?;
            }
        }
        Ok(())
    }

    /// The processes and threads of a packet. Threads belong to their processes from now on, also where earlier events of theirs are held
    /// back; programs wait for their turn.
    fn processes(&mut self, trace: &mut Trace<'_>, packet: &TracePacket) {
        let Some(tree) = &packet.process_tree else { return };
        // Packets of other data sources come in any order: those about new processes often before these processes' events.
        let ts = packet.timestamp.filter(|_| matches!(packet.timestamp_clock_id, None | Some(CLOCK_BOOTTIME)));
        // Not late: its process had its events.
        let ts = ts.unwrap_or(self.latest).max(self.order.given());
        for process in &tree.processes {
            let Some(pid) = process.pid.and_then(task) else { continue };
            trace.belongs(pid, pid);
            if let Some(program) = Program::of(pid, &process.cmdline) {
                let weight = program.weight();
                let what = What::Runs(Box::new(program));
                self.order.add(ts, weight, Event { ts, tid: None, cpu: 0, what });
            }
        }
        for thread in &tree.threads {
            if let (Some(tid), Some(pid)) = (thread.tid.and_then(task), thread.tgid.and_then(task)) {
                trace.belongs(tid, pid);
            }
        }
    }

    /// An event waits for its turn.
    fn hold(&mut self, event: Event) {
        self.latest = self.latest.max(event.ts);
        self.order.add(event.ts, 1, event);
    }

    /// Writes the programs that are known before the first event, as of its time.
    fn begin(&mut self, trace: &mut Trace<'_>, ts: Nanos) -> Result<(), ImportError> {
        match self.early.take() {
            Some(early) => early.write(trace, ts),
            None => Ok(()),
        }
    }

    fn of_bundle(&mut self, trace: &mut Trace<'_>, bundle: FtraceEventBundle) {
        if let Some(cpu) = bundle.cpu {
            trace.facts.see_cpu(cpu);
        }
        let cpu = bundle.cpu.unwrap_or(0);
        if let Some(ts) = bundle.event.iter().find_map(|event| event.timestamp) {
            trace.facts.see_time(Nanos(ts));
        }
        if bundle.lost_events == Some(true) {
            trace.facts.losses.add("ftrace.any", 1);
            if let Some(ts) = bundle.begin() {
                self.hold(Event { ts, tid: None, cpu, what: What::Lost });
            }
        }
        if let Some(compact) = bundle.compact_sched {
            for (ts, bits, next, name) in compact.switches() {
                let what = What::Switch { prev: None, state: state(bits), next, name: text(name) };
                self.hold(Event { ts, tid: None, cpu, what });
            }
            for (ts, tid) in compact.wakings() {
                self.hold(Event { ts, tid: None, cpu, what: What::Woken(tid) });
            }
        }
        for event in bundle.event {
            let (Some(ts), tid) = (event.timestamp, event.pid.filter(|tid| *tid != 0)) else { continue };
            let woken = event.sched_wakeup.or(event.sched_waking).or(event.sched_wakeup_new);
            let mapped =
                |map: &messages::FileMap| (map.s_dev.unwrap_or(0), map.i_ino.unwrap_or(0), map.index.unwrap_or(0));
            let request = |one: &messages::BlockRequest| {
                let bytes = u64::from(one.nr_sector.unwrap_or(0)) * 512;
                let read = one.rwbs.as_deref().is_none_or(|kind| kind.contains('R'));
                (one.dev.unwrap_or(0), one.sector.unwrap_or(0), bytes, read)
            };
            let what = if let Some(switch) = event.sched_switch {
                let (prev, next) = (switch.prev_pid.and_then(task), switch.next_pid.and_then(task));
                What::Switch {
                    prev,
                    state: state(switch.prev_state.unwrap_or(0)),
                    next,
                    name: text(&switch.next_comm.unwrap_or_default()),
                }
            } else if let Some(tid) = woken.and_then(|woken| woken.pid).and_then(task) {
                What::Woken(tid)
            } else if let Some(blocked) = &event.sched_blocked_reason {
                match blocked.pid.and_then(task).filter(|_| blocked.io_wait.unwrap_or(0) != 0) {
                    Some(tid) => What::Storage(tid),
                    None => continue,
                }
            } else if let Some(map) = &event.mm_filemap_add_to_page_cache {
                lack_folios(trace);
                What::Page(PageCacheOp::Add, mapped(map))
            } else if let Some(map) = &event.mm_filemap_delete_from_page_cache {
                lack_folios(trace);
                What::Page(PageCacheOp::Delete, mapped(map))
            } else if let Some(issue) = &event.block_rq_issue {
                What::Issue(request(issue))
            } else if let Some(complete) = &event.block_rq_complete {
                What::Complete(request(complete))
            } else if let Some(made) = event.task_newtask {
                let Some(tid) = made.pid.and_then(task) else { continue };
                What::New(tid, made.clone_flags.unwrap_or(0) & CLONE_THREAD != 0)
            } else if let Some(exec) = event.sched_process_exec {
                What::Exec(text(&exec.filename.unwrap_or_default()))
            } else if let Some(exit) = event.sched_process_exit {
                let Some(tid) = exit.pid.and_then(task) else { continue };
                What::Exit(tid)
            } else {
                trace.facts.leave_out("others");
                continue;
            };
            self.hold(Event { ts, tid, cpu, what });
        }
    }

    /// An event whose turn it is.
    fn emit(&mut self, trace: &mut Trace<'_>, event: Event) -> Result<(), ImportError> {
        let ts = Nanos(event.ts);
        if let What::Runs(program) = event.what {
            let Some(early) = &mut self.early else { return program.write(trace, ts) };
            early.keep(*program);
            return Ok(());
        }
        self.begin(trace, ts)?;
        trace.facts.see_time(ts);
        let events = &mut self.events;
        let tid = match &event.what {
            What::Lost => None,
            What::Switch { prev, .. } => prev.or(event.tid).or_else(|| events.running(event.cpu)),
            _ => event.tid.or_else(|| events.running(event.cpu)),
        };
        let thread = match tid {
            Some(tid) => Some(trace.thread(ts, tid, None, None)?),
            None => None,
        };
        let at = Circumstances { ts, thread, in_interrupt: false, stack: None, by_stack: None };
        match event.what {
            What::Switch { state, next, name, .. } => {
                events.runs(event.cpu, next);
                events.switched(trace, &at, state, next.unwrap_or(0), &name)
            }
            What::Woken(tid) => {
                events.woken(trace, &at, tid);
                Ok(())
            }
            What::Storage(tid) => {
                trace.because(tid, OffCpuReason::OtherIo);
                Ok(())
            }
            What::Page(op, (dev, ino, page)) => events.page_cache(trace, &at, op, (dev, ino, page, 1)),
            What::Issue((dev, sector, bytes, read)) => {
                events.issued(trace, &at, (dev, sector, bytes, read));
                Ok(())
            }
            What::Complete((dev, sector, bytes, read)) => events.completed(trace, &at, (dev, sector, bytes, read)),
            What::New(tid, is_thread) => match thread {
                Some(parent) => trace.fork(ts, parent, tid, if is_thread { parent.process.pid } else { tid }),
                None => Ok(()),
            },
            What::Exec(file) => events.executed(trace, &at, &file),
            What::Exit(tid) => {
                trace.end(ts, tid);
                Ok(())
            }
            What::Lost => {
                events.runs(event.cpu, None);
                Ok(())
            }
            What::Runs(_) => Ok(()),
        }
    }
}

/// What `MmFilemapAddToPageCacheFtraceEvent` and its counterpart have no field for.
fn lack_folios(trace: &mut Trace<'_>) {
    trace.facts.lack(
        "the sizes of large folios in the page cache",
        "Perfetto's messages of these events have no order: each counts as one page, also where a folio of many pages came or went",
        "ftrace or perf record of mm_filemap_add_to_page_cache and mm_filemap_delete_from_page_cache; or `slowpath record`",
    );
}

#[cfg(test)]
pub(crate) mod tests;
