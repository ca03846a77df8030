//! `simpleperf report-sample --protobuf`: CPU samples of Android apps with their call stacks, native, compiled and interpreted Java.
//!
//! The file begins with `SIMPLEPERF` and a version, and holds records, each with its length before it, until a length of 0
//! (system/extras/simpleperf/cmd_report_sample.proto). Samples come first and refer to files and threads that come last, so they are kept
//! until the end: call chains each once, a sample in 32 bytes, both with a limit.

use crate::cpu_event::CpuEvent;
use crate::declaration::Importer;
use crate::facts::WAKE_UPS;
use crate::input::Input;
use crate::perf_sample::is_cpu_sample;
use crate::problem::ImportError;
use crate::stacks::{CodePlace, DEEPEST};
use crate::tasks::Thread;
use crate::trace::Trace;
use crate::wait_reason::of_function;
use prost::Message;
use slowpath_tables::{CpuSample, FrameKind, Nanos, OffCpuReason};
use std::collections::HashMap;

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "simpleperf",
    title: "simpleperf: CPU samples of Android apps with their call stacks",
    made_by: "simpleperf record -e cpu-clock -c 1000000 -g --app PACKAGE (with --trace-offcpu: waits), then simpleperf report-sample \
              --protobuf --show-callchain -i perf.data -o FILE",
    reads: "CPU samples (cpu-clock, task-clock, cycles), threads and their processes, call stacks by function; with --trace-offcpu when \
            threads left and entered a CPU",
    lacks: "report-sample prints no page fault, no file access, no page cache and no mapping",
    probes: &["cpu_sample", "off_cpu"],
    detects,
    import,
};

const MAGIC: &[u8] = b"SIMPLEPERF";
const VERSION: u16 = 1;

/// Bytes of a record: the names of the functions of one library.
const LONGEST_RECORD: u64 = 64 << 20;
/// Samples and switches that are kept.
const MOST_SAMPLES: usize = 4 << 20;
/// Frames of all call chains that are kept.
const MOST_FRAMES: usize = 16 << 20;

const HEAD: &str = "SIMPLEPERF and version 1 (little-endian, two bytes)";
const LENGTH: &str = "the length of a record (little-endian, four bytes), of at most 64 MiB, or 0 at the end";
const WHOLE: &str = "as many bytes as the length of the record says";
const MESSAGE: &str = "a Record message before this byte";

/// `Record`.
#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(message, optional, tag = "1")]
    sample: Option<Sample>,
    #[prost(message, optional, tag = "2")]
    lost: Option<Lost>,
    #[prost(message, optional, tag = "3")]
    file: Option<File>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadInfo>,
    #[prost(message, optional, tag = "5")]
    meta_info: Option<MetaInfo>,
    #[prost(message, optional, tag = "6")]
    context_switch: Option<ContextSwitch>,
}

/// `Sample`.
#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, optional, tag = "1")]
    time: Option<u64>,
    #[prost(int32, optional, tag = "2")]
    thread_id: Option<i32>,
    #[prost(message, repeated, tag = "3")]
    callchain: Vec<Entry>,
    #[prost(uint64, optional, tag = "4")]
    event_count: Option<u64>,
    #[prost(uint32, optional, tag = "5")]
    event_type_id: Option<u32>,
}

/// `Sample.CallChainEntry`, the innermost first.
#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(uint64, optional, tag = "1")]
    vaddr_in_file: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    file_id: Option<u32>,
    #[prost(int32, optional, tag = "3")]
    symbol_id: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    execution_type: Option<i32>,
}

/// `LostSituation`.
#[derive(Clone, PartialEq, Message)]
struct Lost {
    #[prost(uint64, optional, tag = "2")]
    lost_count: Option<u64>,
}

/// `File`. Names are bytes: some are no UTF-8.
#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(uint32, optional, tag = "1")]
    id: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    path: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    symbol: Vec<Vec<u8>>,
}

/// `Thread`.
#[derive(Clone, PartialEq, Message)]
struct ThreadInfo {
    #[prost(uint32, optional, tag = "1")]
    thread_id: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    process_id: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    thread_name: Option<Vec<u8>>,
}

/// `MetaInfo`.
#[derive(Clone, PartialEq, Message)]
struct MetaInfo {
    #[prost(bytes = "vec", repeated, tag = "1")]
    event_type: Vec<Vec<u8>>,
}

/// `ContextSwitch`.
#[derive(Clone, PartialEq, Message)]
struct ContextSwitch {
    #[prost(bool, optional, tag = "1")]
    switch_on: Option<bool>,
    #[prost(uint64, optional, tag = "2")]
    time: Option<u64>,
    #[prost(uint32, optional, tag = "3")]
    thread_id: Option<u32>,
}

/// `Sample.CallChainEntry.ExecutionType.JIT_JVM_METHOD`.
const COMPILED_IN_MEMORY: i32 = 2;

/// File, function in it, whether it is code that was compiled in memory, and its address.
type FrameKey = (u32, i32, bool, u64);

/// A sample or a switch, in the order of the file.
struct Kept {
    ts: u64,
    tid: u32,
    what: What,
}

enum What {
    /// Number of its event, what was counted, number of its call chain.
    Sample(u32, u64, u32),
    /// Whether the thread runs now.
    Switch(bool),
}

#[derive(Default)]
struct Samples {
    events: Vec<String>,
    kept: Vec<Kept>,
    chains: Vec<Box<[FrameKey]>>,
    numbers: HashMap<Box<[FrameKey]>, u32>,
    frames: usize,
    left_out: u64,
    files: HashMap<u32, (String, Vec<String>)>,
    threads: HashMap<u32, (u32, String)>,
}

fn detects(head: &[u8]) -> bool {
    head.strip_prefix(MAGIC).is_some_and(|rest| rest.starts_with(&VERSION.to_le_bytes()))
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let mut found = Samples::default();
    // What was read until an error has its files and threads only as far as they came.
    let read = found.records(input, trace);
    found.write(trace)?;
    read
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Samples {
    fn records(&mut self, input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        let mut bytes = Vec::new();
        input.next_bytes(MAGIC.len() as u64 + 2, HEAD, &mut bytes)?;
        if !detects(&bytes) {
            return Err(input.wrong_bytes(HEAD));
        }
        loop {
            if !input.next_bytes(4, LENGTH, &mut bytes)? {
                return Err(input.wrong_bytes(LENGTH));
            }
            let length = bytes.as_slice().try_into().map_or(0, u32::from_le_bytes);
            if length == 0 {
                return Ok(());
            }
            if u64::from(length) > LONGEST_RECORD {
                return Err(input.wrong_bytes(LENGTH));
            }
            if !input.next_bytes(u64::from(length), WHOLE, &mut bytes)? {
                return Err(input.wrong_bytes(WHOLE));
            }
            let Ok(record) = Record::decode(bytes.as_slice()) else { return Err(input.wrong_bytes(MESSAGE)) };
            self.record(record, trace);
        }
    }

    fn record(&mut self, record: Record, trace: &mut Trace<'_>) {
        if let Some(sample) = record.sample {
            let (ts, tid) = (sample.time.unwrap_or(0), id(sample.thread_id));
            let (event, count) = (sample.event_type_id.unwrap_or(0), sample.event_count.unwrap_or(0));
            if let (Some(tid), Some(chain)) = (tid, self.chain(&sample.callchain)) {
                self.keep(Kept { ts, tid, what: What::Sample(event, count, chain) });
            }
        } else if let Some(switch) = record.context_switch {
            if let Some(tid) = switch.thread_id.filter(|tid| *tid != 0) {
                let what = What::Switch(switch.switch_on == Some(true));
                self.keep(Kept { ts: switch.time.unwrap_or(0), tid, what });
            }
        } else if let Some(lost) = record.lost {
            trace.facts.losses.add("simpleperf.any", lost.lost_count.unwrap_or(0));
        } else if let Some(file) = record.file {
            let names = file.symbol.iter().map(|name| text(name)).collect();
            self.files.insert(file.id.unwrap_or(0), (text(&file.path.unwrap_or_default()), names));
        } else if let Some(thread) = record.thread {
            if let (Some(tid), Some(pid)) = (thread.thread_id, thread.process_id) {
                self.threads.insert(tid, (pid, text(&thread.thread_name.unwrap_or_default())));
            }
        } else if let Some(meta) = record.meta_info {
            self.events = meta.event_type.iter().map(|name| text(name)).collect();
        } else {
            trace.facts.leave_out("others");
        }
    }

    fn keep(&mut self, kept: Kept) {
        if self.kept.len() < MOST_SAMPLES {
            self.kept.push(kept);
        } else {
            self.left_out += 1;
        }
    }

    /// The number of a call chain; none where there is no room for another one.
    fn chain(&mut self, entries: &[Entry]) -> Option<u32> {
        let key = |entry: &Entry| {
            let is_in_memory = entry.execution_type == Some(COMPILED_IN_MEMORY);
            let symbol = entry.symbol_id.unwrap_or(-1);
            // A function is known by its name; only code without one by its address.
            let address = if symbol < 0 || is_in_memory { entry.vaddr_in_file.unwrap_or(0) } else { 0 };
            (entry.file_id.unwrap_or(u32::MAX), symbol, is_in_memory, address)
        };
        let chain: Box<[FrameKey]> = entries.iter().take(DEEPEST).map(key).collect();
        if let Some(number) = self.numbers.get(&chain) {
            return Some(*number);
        }
        if self.frames.saturating_add(chain.len()) > MOST_FRAMES {
            self.left_out += 1;
            return None;
        }
        self.frames += chain.len();
        let number = u32::try_from(self.chains.len()).ok()?;
        self.chains.push(chain.clone());
        self.numbers.insert(chain, number);
        Some(number)
    }

    fn write(mut self, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        self.kept.sort_by_key(|kept| kept.ts);
        if self.left_out > 0 {
            trace.facts.lack("further samples", "there are more than an import keeps in memory", "a shorter trace");
        }
        if self.threads.is_empty() && !self.kept.is_empty() {
            trace.facts.lack(
                "which threads belong to one process",
                "the trace lists no threads: each counts as a process",
                "simpleperf report-sample of the whole perf.data",
            );
        }
        for event in self.events.iter().filter_map(|name| CpuEvent::of(name)) {
            trace.facts.cpu_samples.announce(event);
        }
        // The stack of the last sample of a switch, by thread: simpleperf takes it where the thread leaves its CPU.
        let mut left_at: HashMap<u32, (u64, Option<u32>, Option<OffCpuReason>)> = HashMap::new();
        for kept in std::mem::take(&mut self.kept) {
            let ts = Nanos(kept.ts);
            let (pid, name) = match self.threads.get(&kept.tid) {
                Some((pid, name)) => {
                    (Some(*pid).filter(|pid| *pid != 0), Some(name.as_str()).filter(|name| !name.is_empty()))
                }
                None => (None, None),
            };
            let thread = trace.thread(ts, kept.tid, pid, name)?;
            match kept.what {
                What::Switch(true) => trace.enter(ts, kept.tid)?,
                What::Switch(false) => {
                    trace.facts.lack(
                        WAKE_UPS,
                        "report-sample prints none: what a thread waited for a CPU after its wake-up counts as its wait, not as \
                         run-queue delay",
                        "Perfetto with sched_switch and sched_waking; or `slowpath record --off-cpu`",
                    );
                    let at = left_at.remove(&kept.tid).filter(|(left, ..)| *left == kept.ts);
                    let (_, stack, reason) = at.unwrap_or_default();
                    trace.leave(ts, thread, reason.unwrap_or(OffCpuReason::Kernel), stack);
                }
                What::Sample(event, count, chain) => {
                    let event = self.events.get(event as usize).map_or("", String::as_str);
                    let chain = self.chains.get(chain as usize).map_or(&[][..], AsRef::as_ref);
                    let stack = self.stack(trace, thread, chain)?;
                    if event.starts_with("sched:sched_switch") {
                        let reason = chain.iter().find_map(|frame| of_function(self.function(frame)?));
                        left_at.insert(kept.tid, (kept.ts, stack, reason));
                        continue;
                    }
                    let is_kernel = chain.first().is_some_and(|(file, ..)| self.kind(*file) == FrameKind::Kernel);
                    sample(trace, thread, (ts, event, count), stack, is_kernel)?;
                }
            }
        }
        Ok(())
    }

    fn function(&self, (file, symbol, ..): &FrameKey) -> Option<&str> {
        let (_, names) = self.files.get(file)?;
        names.get(usize::try_from(*symbol).ok()?).map(String::as_str)
    }

    fn kind(&self, file: u32) -> FrameKind {
        match self.files.get(&file).map(|(path, _)| path.as_str()) {
            Some(path) if path.starts_with("[kernel.kallsyms]") || path.ends_with(".ko") => FrameKind::Kernel,
            Some("[vdso]") => FrameKind::Vdso,
            Some(path) if path.starts_with('/') && !path.starts_with("/memfd:") && !path.starts_with("/dev/ashmem") => {
                FrameKind::File
            }
            _ => FrameKind::Generated,
        }
    }

    fn stack(&self, trace: &mut Trace<'_>, thread: Thread, chain: &[FrameKey]) -> Result<Option<u32>, ImportError> {
        let mut frames = Vec::with_capacity(chain.len());
        for key in chain {
            let (file, _, is_in_memory, address) = *key;
            let kind = if is_in_memory { FrameKind::Generated } else { self.kind(file) };
            let path = self.files.get(&file).map_or("", |(path, _)| path.as_str());
            let file = if kind == FrameKind::File { Some(trace.file(path)?) } else { None };
            let process = (kind == FrameKind::Generated).then_some(thread.process);
            let address = matches!(kind, FrameKind::Generated | FrameKind::Kernel).then_some(address);
            frames.push((CodePlace { kind, file, offset: None, process, address }, self.function(key)));
        }
        trace.stack(&frames)
    }
}

fn id(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok()).filter(|id| *id != 0)
}

fn sample(
    trace: &mut Trace<'_>,
    thread: Thread,
    (ts, event, count): (Nanos, &str, u64),
    stack: Option<u32>,
    kernel: bool,
) -> Result<(), ImportError> {
    let Some(counted) = CpuEvent::of(event) else {
        trace.facts.leave_out(event.split([':', '/']).next().unwrap_or_default());
        return Ok(());
    };
    if !is_cpu_sample(trace, counted) {
        return Ok(());
    }
    if counted.is_clock() && count > 0 {
        // The first sample of a thread may stand for less: the longest period is the one that was asked for.
        let hz = (1_000_000_000 / count).max(1);
        trace.facts.sample_hz = Some(trace.facts.sample_hz.map_or(hz, |before| before.min(hz)));
    } else {
        trace.facts.lack(
            "the time that a CPU sample stands for",
            "the samples are of cycles",
            "simpleperf record -e cpu-clock -c 1000000",
        );
    }
    trace.facts.lack(
        "the CPU of a sample",
        "report-sample does not print it: all are shown on CPU 0",
        "`slowpath record`",
    );
    trace.facts.see_probe("cpu_sample");
    trace.row(CpuSample {
        ts,
        pid: thread.process.pid,
        start: thread.process.start,
        tid: thread.tid,
        cpu: 0,
        kernel,
        stack,
        first_argument: None,
        second_argument: None,
        copies: None,
    })
}

#[cfg(test)]
pub(crate) mod tests;
