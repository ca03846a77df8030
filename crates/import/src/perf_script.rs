//! `perf script`: one line an event, and below it, where call stacks were recorded, a line a frame.
//!
//! Read: samples of the CPU, page faults, the scheduler's switches and wake-ups, page cache, block I/O, with `--show-task-events` and
//! `--show-mmap-events` processes, threads, names and which file is mapped where, and with `--show-lost-events` how much is missing. An
//! event ends with the line before the next one, so that its stack is known when rows are written.

mod frame;
mod header;

use crate::code_file::CodeFile;
use crate::cpu_event::CpuEvent;
use crate::declaration::{Importer, head_lines};
use crate::input::Input;
use crate::kernel_event::{Circumstances, KernelEvents, fault};
use crate::mappings::Mappings;
use crate::perf_lost::Lost;
use crate::perf_sample::{Sampled, cpu_sample, stands_for_faults};
use crate::problem::ImportError;
use crate::stacks::{CodePlace, DEEPEST};
use crate::tasks::Thread;
use crate::trace::Trace;
use crate::wait_reason::of_function;
use frame::FrameLine;
use header::Header;
use slowpath_tables::{FaultKind, FileKey, FrameKind};

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "perf",
    title: "perf script: samples, scheduler, page faults, with call stacks",
    made_by: "perf record -a -g -d -c 1 -e cpu-clock/period=1000000/,minor-faults,major-faults,sched:sched_switch,\
              sched:sched_wakeup, then perf script -F +pid,+addr,+period,+ip,+sym,+dso --show-task-events \
              --show-mmap-events --show-lost-events --header",
    reads: "CPU samples (cpu-clock, task-clock, cycles), page faults, switches and wake-ups, page cache, block I/O, processes, \
            executable mappings, call stacks",
    lacks: "perf's events have no duration, no result of a system call and no content of memory",
    probes: &["block", "cpu_sample", "fault", "off_cpu", "page_cache", "process"],
    detects,
    import,
};

const HEADER: &str = "an event of perf script: COMM PID/TID [CPU] SECONDS.MICROSECONDS: EVENT:";
const FRAME: &str = "a frame of a call stack: ADDRESS FUNCTION (FILE)";
const TASK_EVENT: &str = "the fields that perf script prints behind this record";
const FIELDS: &str = "the fields of this kernel event";

fn detects(head: &[u8]) -> bool {
    let mut lines = head_lines(head).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| Header::of(line).is_some())
}

/// An event whose stack is being read.
struct Pending {
    header: Header,
    frames: Vec<FrameLine>,
}

/// What is known from earlier lines.
#[derive(Default)]
struct State {
    events: KernelEvents,
    mappings: Mappings<FileKey>,
    lost: Lost,
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let mut state = State::default();
    let mut pending: Option<Pending> = None;
    let mut line = String::new();
    let read = loop {
        match input.next_line(&mut line) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
        if line.starts_with('\t') {
            let Some(frame) = FrameLine::of(&line) else { break Err(input.wrong(FRAME, &line)) };
            match &mut pending {
                Some(event) if event.frames.len() < DEEPEST => event.frames.push(frame),
                Some(_) => {}
                None => break Err(input.wrong(HEADER, &line)),
            }
            continue;
        }
        if let Some(event) = pending.take()
            && !state.event(trace, event)?
        {
            break Err(input.wrong(FIELDS, "an event before this line"));
        }
        if line.trim().is_empty() || comment(trace, &line) {
            continue;
        }
        let Some(header) = Header::of(&line) else { break Err(input.wrong(HEADER, &line)) };
        if header.event.starts_with("PERF_RECORD_") {
            if !state.record(trace, &header)? {
                break Err(input.wrong(TASK_EVENT, &line));
            }
        } else {
            pending = Some(Pending { header, frames: Vec::new() });
        }
    };
    if let Some(event) = pending
        && read.is_ok()
        && !state.event(trace, event)?
    {
        return Err(input.wrong(FIELDS, "the last event"));
    }
    state.lost.add_to(&mut trace.facts.losses);
    state.events.finish(trace)?;
    read
}

/// The lines of `perf script --header`.
fn comment(trace: &mut Trace<'_>, line: &str) -> bool {
    let Some(text) = line.strip_prefix('#') else { return false };
    let facts = &mut trace.facts;
    if let Some((key, value)) = text.split_once(" : ") {
        match key.trim() {
            "os release" => facts.kernel = Some(value.trim().to_owned()),
            "arch" => facts.machine = Some(value.trim().to_owned()),
            "nrcpus online" => facts.cpus = value.trim().parse().ok(),
            // `name = cycles:P, , id = { 5, 6 }, type = 0 (PERF_TYPE_HARDWARE), ...`
            "event" => {
                let name = value.trim().strip_prefix("name = ").and_then(|rest| rest.split(", ").next());
                if let Some(event) = name.and_then(CpuEvent::of) {
                    facts.cpu_samples.announce(event);
                }
            }
            _ => {}
        }
    }
    true
}

impl State {
    fn thread(&self, trace: &mut Trace<'_>, header: &Header) -> Result<Option<Thread>, ImportError> {
        trace.facts.see_time(header.ts);
        if let Some(cpu) = header.cpu {
            trace.facts.see_cpu(cpu);
        }
        if header.pid.is_none() {
            trace.facts.lack(
                "which threads belong to one process",
                "perf script printed thread ids only: each thread counts as a process",
                "perf script -F +pid",
            );
        }
        if header.tid == 0 {
            return Ok(None);
        }
        trace.thread(header.ts, header.tid, header.pid, Some(&header.comm)).map(Some)
    }

    /// An event that is whole. False where its fields are none that it has.
    fn event(&mut self, trace: &mut Trace<'_>, event: Pending) -> Result<bool, ImportError> {
        let Pending { header, mut frames } = event;
        let thread = self.thread(trace, &header)?;
        let name = header.event.split_once(':').map_or("", |(_, name)| name);
        let is_tracepoint = header.is_tracepoint;
        let mut rest = header.rest.as_str();
        if !is_tracepoint && frames.is_empty() {
            // Without call stacks the instruction stands in the line itself.
            frames.extend(FrameLine::of(rest));
            rest = "";
        }
        let stack = self.stack(trace, thread, &frames)?;
        let by_stack = frames.iter().filter_map(|frame| frame.function.as_deref()).find_map(of_function);
        let at = Circumstances { ts: header.ts, thread, in_interrupt: false, stack, by_stack };
        if is_tracepoint {
            if name == "sched_switch" && frames.is_empty() {
                trace.facts.lack(
                    "the reasons of waits",
                    "the switches have no call stack: a wait that the thread's state does not explain is one in the kernel",
                    "perf record -g",
                );
            }
            return self.events.text(trace, name, rest, &at);
        }
        let is_kernel = frames.first().is_some_and(|frame| frame.file == CodeFile::Kernel);
        let ip = frames.first().map_or(0, |frame| frame.address);
        let address = rest.split_whitespace().next().and_then(|word| u64::from_str_radix(word, 16).ok()).unwrap_or(0);
        if let Some(event) = CpuEvent::of(&header.event) {
            let sampled = Sampled { cpu: header.cpu, period: header.period, event, kernel: is_kernel };
            return cpu_sample(trace, &at, sampled).map(|()| true);
        }
        let kind = match header.event.split([':', '/']).next().unwrap_or_default() {
            "minor-faults" => Some(FaultKind::Minor),
            "major-faults" => Some(FaultKind::Major),
            "page-faults" | "faults" => None,
            other => {
                trace.facts.leave_out(other);
                return Ok(true);
            }
        };
        stands_for_faults(trace, header.period);
        match kind {
            Some(kind) => fault(trace, &at, kind, (address, ip), is_kernel)?,
            None => self.events.fault(trace, &at, address, ip, is_kernel)?,
        }
        Ok(true)
    }

    fn stack(
        &mut self,
        trace: &mut Trace<'_>,
        thread: Option<Thread>,
        frames: &[FrameLine],
    ) -> Result<Option<u32>, ImportError> {
        let Some(thread) = thread.filter(|_| !frames.is_empty()) else { return Ok(None) };
        let mut places = Vec::with_capacity(frames.len());
        for (at, frame) in frames.iter().enumerate() {
            // An inlined function is in the code of the one that it was inlined into, which follows.
            let holder = frames[at..].iter().find(|frame| frame.file != CodeFile::Inlined).unwrap_or(frame);
            places.push((self.place(trace, thread, holder)?, frame.function.as_deref()));
        }
        trace.stack(&places)
    }

    fn place(&self, trace: &mut Trace<'_>, thread: Thread, frame: &FrameLine) -> Result<CodePlace, ImportError> {
        let process = Some(thread.process);
        let (kind, file, address) = match &frame.file {
            CodeFile::Kernel => (FrameKind::Kernel, None, Some(frame.address)),
            CodeFile::Vdso => (FrameKind::Vdso, None, None),
            CodeFile::Generated | CodeFile::Inlined => (FrameKind::Generated, None, Some(frame.address)),
            CodeFile::At(path) => {
                let file = trace.file(path)?;
                let mapped = self.mappings.at(thread.process.pid, frame.address).filter(|(key, _)| *key == file);
                let offset = mapped.map(|(_, offset)| offset);
                return Ok(CodePlace { kind: FrameKind::File, file: Some(file), offset, process: None, address: None });
            }
        };
        let process = process.filter(|_| kind == FrameKind::Generated);
        Ok(CodePlace { kind, file, offset: None, process, address })
    }

    /// A record about a process: `PERF_RECORD_COMM exec: name:7/7`, `PERF_RECORD_FORK(8:8):(7:7)`, and so on.
    fn record(&mut self, trace: &mut Trace<'_>, header: &Header) -> Result<bool, ImportError> {
        let ts = header.ts;
        let (kind, rest) = (header.event.as_str(), header.rest.as_str());
        if ts.0 == 0 && (kind.starts_with("PERF_RECORD_FORK") || kind.starts_with("PERF_RECORD_COMM")) {
            // What was there before the recording comes first, at no time.
            return Ok(self.present(trace, kind, rest));
        }
        if kind.starts_with("PERF_RECORD_FORK") || kind.starts_with("PERF_RECORD_EXIT") {
            let text = kind.split_once('(').map_or(rest, |(_, text)| text);
            let Some([pid, tid, parent, parent_tid]) = four(text) else { return Ok(false) };
            if kind.starts_with("PERF_RECORD_EXIT") {
                if tid == pid {
                    self.mappings.forget(pid);
                }
                trace.end(ts, tid);
            } else {
                self.mappings.fork(parent, pid);
                let parent = trace.thread(ts, parent_tid, Some(parent), None)?;
                trace.fork(ts, parent, tid, pid)?;
            }
            return Ok(true);
        }
        match kind {
            "PERF_RECORD_COMM" => {
                let is_exec = rest.starts_with("exec: ");
                let text = rest.strip_prefix("exec: ").unwrap_or(rest);
                let Some((comm, ids)) = text.rsplit_once(':') else { return Ok(false) };
                let Some((pid, tid)) = ids.split_once('/') else { return Ok(false) };
                let (Ok(pid), Ok(tid)) = (pid.trim().parse::<u32>(), tid.trim().parse::<u32>()) else {
                    return Ok(false);
                };
                if tid != 0 {
                    if is_exec {
                        self.mappings.forget(pid);
                    }
                    trace.thread(ts, tid, Some(pid), Some(comm.trim()))?;
                }
                Ok(true)
            }
            "PERF_RECORD_MMAP" | "PERF_RECORD_MMAP2" => match frame::mapping(rest) {
                Some(mapping) => self.map(trace, mapping).map(|()| true),
                None => Ok(false),
            },
            "PERF_RECORD_LOST" | "PERF_RECORD_LOST_SAMPLES" => {
                let events = rest.rsplit(' ').find_map(|word| word.parse().ok()).unwrap_or(1);
                match kind {
                    "PERF_RECORD_LOST" => self.lost.said(events),
                    _ => self.lost.counted(events),
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// A process or thread that was there already. False where its fields are none that it has.
    fn present(&mut self, trace: &mut Trace<'_>, kind: &str, rest: &str) -> bool {
        if kind.starts_with("PERF_RECORD_FORK") {
            let Some([pid, tid, ..]) = kind.split_once('(').and_then(|(_, text)| four(text)) else { return false };
            trace.belongs(tid, pid);
            return true;
        }
        // Its name comes with its first event.
        rest.rsplit_once(':').is_some_and(|(_, ids)| ids.contains('/'))
    }

    fn map(&mut self, trace: &mut Trace<'_>, mapping: frame::Mapping) -> Result<(), ImportError> {
        let CodeFile::At(path) = CodeFile::of(&mapping.path) else { return Ok(()) };
        let key = match mapping.key {
            Some(key) if key.ino != 0 => trace.identify(&path, key)?,
            _ => trace.file(&path)?,
        };
        self.mappings.map(mapping.pid, (mapping.from, mapping.length), mapping.offset, key);
        Ok(())
    }
}

/// Four numbers of `8:9):(6:7)`.
fn four(text: &str) -> Option<[u32; 4]> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?, next()?])
}

#[cfg(test)]
pub(crate) mod tests;
