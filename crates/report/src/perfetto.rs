//! A recording as a trace for the Perfetto UI (ui.perfetto.dev) and its trace processor.
//!
//! Owns which rows become which events. Processes and threads carry faults, reads, readahead and memory calls; CPU samples are
//! samples of threads with their call stacks. When a thread was off the CPU is a track of slices below it, named by the reason:
//! for the thread states that Perfetto computes itself one would have to say what ran instead, which is not recorded. Each block
//! device has its requests, and each CPU of a trace what it did; counters show pages entering the page cache; one track holds the launch. All times are
//! `CLOCK_MONOTONIC`, as in the recording, with a snapshot that maps them to the time of day.

mod cpus;
mod messages;
mod packets;
#[cfg(test)]
mod read_back;
mod stacks;
mod tracks;

use crate::ThreadKey;
use crate::gaps;
use crate::recording_exports::{ExportOptions, Exported, NotExported, RecordingExport, Work};
use messages::{CpuMode, PerfSample};
use packets::{Detail, Event, Packets};
use slowpath_analysis::printed::longest::longest;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;
use slowpath_tables::{FaultKind, FileKey, PageCacheOp, ProcessKey};
use stacks::Stacks;
use std::collections::{BTreeMap, HashMap};
use tracks::Tracks;

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "perfetto",
    title: "A trace for ui.perfetto.dev: everything that happened, on tracks",
    what: "Everything that happened, on tracks of processes, threads and devices, with call stacks and counters.",
    lacks: "Of minor faults and of intervals off the CPU only the longest where there are very many; a note in the trace says how many \
            are left out.",
    read_by: "ui.perfetto.dev, trace_processor",
    is_text: false,
    takes: None,
    of_diagnosis: None,
    files: None,
    prepare,
};

fn prepare<'a>(tables: &'a Tables, _: &ExportOptions) -> Result<Work<'a>, NotExported> {
    let Export { trace, notes } = export(tables);
    Ok(Box::new(move |out, to| {
        out.write_all(&trace)?;
        Ok(Exported { notes, next: format!("open {} in https://ui.perfetto.dev", to.name) })
    }))
}

/// Minor faults are left out, all of them, when a recording has more: half a million slices of a microsecond each make
/// the trace slow to open and show nothing that a count does not.
pub const MINOR_FAULT_LIMIT: usize = 200_000;

/// Intervals off the CPU; of more the longest are kept.
pub const WAIT_LIMIT: usize = 500_000;

/// Shortest distance between two values of a counter, in ns: below a pixel in any view of a launch.
const COUNTER_STEP: u64 = 100_000;

/// A trace and what a reader must know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The trace, a `perfetto.protos.Trace` message.
    pub trace: Vec<u8>,
    /// What was left out or changed, one sentence each; they also stand in the trace.
    pub notes: Vec<String>,
}

/// Exports a recording.
pub fn export(tables: &Tables) -> Export {
    let mut sorted;
    let tables = if is_sorted(tables) {
        tables
    } else {
        sorted = tables.clone();
        sorted.sort();
        &sorted
    };
    let mut packets = Packets::default();
    let mut tracks = Tracks::new(tables);
    let mut notes = gaps::notes(&tables.manifest);
    let call_stacks = CallStacks::new(tables);
    let mut stacks = Stacks::new(&call_stacks);
    for (thread, events) in thread_events(tables, &mut stacks, &mut notes) {
        let track = tracks.thread(&mut packets, thread);
        packets.events(track, events);
    }
    waits(tables, &mut tracks, &mut stacks, &mut packets, &mut notes);
    samples(tables, &mut tracks, &mut stacks, &mut packets);
    stacks.intern(&mut packets);
    block_io(tables, &tracks, &mut packets);
    cpus::events(tables, &mut packets);
    page_counters(tables, &mut tracks, &mut packets);
    if packets.shortened() > 0 {
        notes.push(format!(
            "{} slices outlasted the one they began in and are shown ending with it.",
            packets.shortened()
        ));
    }
    launch(tables, &notes, &mut packets);
    Export { trace: packets.into_trace(tables.manifest.clock, tables.manifest.cpu_sample_hz()), notes }
}

/// Nesting, lanes and counters rely on the order of time.
fn is_sorted(tables: &Tables) -> bool {
    tables.block_io.is_sorted_by_key(|row| row.ts) && tables.page_cache.is_sorted_by_key(|row| row.ts)
}

fn thread_events<'a>(
    tables: &'a Tables,
    stacks: &mut Stacks,
    notes: &mut Vec<String>,
) -> BTreeMap<ThreadKey, Vec<Event<'a>>> {
    let paths: HashMap<FileKey, &str> = tables.files.iter().map(|file| (file.file(), file.path.as_str())).collect();
    let file_details = |file: FileKey| {
        paths.get(&file).map(|path| ("file", Detail::Text(path))).unwrap_or(("inode", Detail::Uint(file.ino)))
    };
    let mut threads: BTreeMap<ThreadKey, Vec<Event>> = BTreeMap::new();
    let (minor, major): (Vec<_>, Vec<_>) = tables.faults.iter().partition(|fault| fault.kind == FaultKind::Minor);
    let minor = minor.into_iter().map(|fault| (fault.duration.unwrap_or_default().0, fault)).collect();
    for fault in major.into_iter().chain(longest(minor, MINOR_FAULT_LIMIT, "minor faults", notes)) {
        threads.entry((fault.process(), fault.tid)).or_default().push(Event {
            start: fault.ts.0,
            end: fault.duration.map(|duration| fault.ts.0.saturating_add(duration.0)),
            category: "fault",
            name: match fault.kind {
                FaultKind::Minor => "minor fault",
                FaultKind::Major => "major fault",
            },
            details: vec![
                ("address", Detail::Address(fault.address)),
                ("instruction", Detail::Address(fault.ip)),
                ("for_the_kernel", Detail::Bool(fault.kernel)),
            ],
            stack: stacks.number(fault.stack),
        });
    }
    for read in &tables.reads {
        threads.entry((read.process(), read.tid)).or_default().push(Event {
            start: read.ts.0,
            end: Some(read.ts.0.saturating_add(read.duration.0)),
            category: "read",
            name: "read",
            details: vec![
                file_details(read.file()),
                ("offset", Detail::Uint(read.offset.0)),
                ("result", Detail::Int(read.result)),
            ],
            stack: None,
        });
    }
    for readahead in &tables.readaheads {
        threads.entry((readahead.process(), readahead.tid)).or_default().push(Event {
            start: readahead.ts.0,
            end: None,
            category: "readahead",
            name: "readahead",
            details: vec![
                file_details(readahead.file()),
                ("page", Detail::Uint(readahead.page.0)),
                ("pages", Detail::Uint(readahead.pages.0)),
                ("kind", Detail::Text(&readahead.kind)),
            ],
            stack: None,
        });
    }
    for exec in &tables.execs {
        // exec leaves the thread-group leader as the only thread.
        threads.entry((exec.process(), exec.pid)).or_default().push(Event {
            start: exec.ts.0,
            end: None,
            category: "process",
            name: "exec",
            details: vec![("program", Detail::Text(&exec.filename)), ("command", Detail::Text(&exec.command_line))],
            stack: None,
        });
    }
    for call in &tables.memory_calls {
        threads.entry((call.process(), call.tid)).or_default().push(Event {
            start: call.ts.0,
            end: Some((call.ts + call.duration).0),
            category: "memory",
            name: call.call.as_str(),
            details: vec![
                ("address", Detail::Address(call.address)),
                ("length", Detail::Uint(call.length.0)),
                ("shrinks", Detail::Bool(call.shrinks)),
                ("flags_or_advice", Detail::Uint(call.argument.into())),
                ("result", Detail::Int(call.result.into())),
            ],
            stack: stacks.number(call.stack),
        });
    }
    threads
}

/// When threads were off the CPU, each on a track below the thread's own.
fn waits(tables: &Tables, tracks: &mut Tracks, stacks: &mut Stacks, packets: &mut Packets, notes: &mut Vec<String>) {
    let rows = tables.off_cpu.iter().map(|row| (row.duration.0, row)).collect();
    let mut threads: BTreeMap<ThreadKey, Vec<Event>> = BTreeMap::new();
    for row in longest(rows, WAIT_LIMIT, "intervals off the CPU", notes) {
        let mut details =
            vec![("runnable_ns", Detail::Uint(row.runnable.0)), ("syscall", Detail::Int(row.syscall.into()))];
        details.extend(row.waker_pid.map(|pid| ("waker_pid", Detail::Uint(pid.into()))));
        details.extend(row.waker_tid.map(|tid| ("waker_tid", Detail::Uint(tid.into()))));
        threads.entry((row.process(), row.tid)).or_default().push(Event {
            start: row.ts.0,
            end: Some((row.ts + row.duration).0),
            category: "off_cpu",
            name: row.reason.as_str(),
            details,
            stack: stacks.number(row.stack),
        });
    }
    for (thread, events) in threads {
        let thread = tracks.thread(packets, thread);
        let track = tracks::named(packets, "off CPU", Some(thread));
        packets.events(track, events);
    }
}

fn samples(tables: &Tables, tracks: &mut Tracks, stacks: &mut Stacks, packets: &mut Packets) {
    for row in &tables.cpu_samples {
        // A sample names its thread by number; the track gives that its name.
        tracks.thread(packets, (row.process(), row.tid));
        let mode = if row.kernel { CpuMode::Kernel } else { CpuMode::User };
        let sample = PerfSample {
            cpu: Some(row.cpu),
            pid: Some(row.pid),
            tid: Some(row.tid),
            callstack_iid: stacks.number(row.stack),
            cpu_mode: Some(mode.into()),
        };
        packets.sample(row.ts.0, sample);
    }
}

fn block_io(tables: &Tables, tracks: &Tracks, packets: &mut Packets) {
    let mut devices: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for request in &tables.block_io {
        devices.entry(request.dev).or_default().push(request);
    }
    for (dev, requests) in devices {
        let device = tracks.device(packets, dev);
        for lane in tracks::lanes(&requests) {
            let track = tracks::named(packets, "requests", Some(device));
            let events = lane.into_iter().map(|request| Event {
                start: request.ts.0,
                end: request.latency.map(|latency| request.ts.0.saturating_add(latency.0)),
                category: "block",
                name: if request.read { "read request" } else { "write request" },
                details: vec![
                    ("sector", Detail::Uint(request.sector)),
                    ("bytes", Detail::Uint(request.bytes.0)),
                    ("pid", Detail::Uint(request.pid.into())),
                    ("in_tree", Detail::Bool(request.in_tree)),
                ],
                stack: None,
            });
            packets.events(track, events.collect());
        }
    }
}

/// Pages inserted so far: one counter for all and one below each process.
fn page_counters(tables: &Tables, tracks: &mut Tracks, packets: &mut Packets) {
    let mut counters: BTreeMap<Option<ProcessKey>, Vec<(u64, u64)>> = BTreeMap::new();
    for row in tables.page_cache.iter().filter(|row| row.op == PageCacheOp::Add) {
        for key in [None, Some(row.process())] {
            let values = counters.entry(key).or_default();
            let total = values.last().map_or(0, |(_, value)| *value).saturating_add(row.pages.0);
            // The last value of a step stands for it, so that the final count is exact.
            if values.len() > 1 && row.ts.0 - values[values.len() - 2].0 < COUNTER_STEP {
                values.pop();
            }
            values.push((row.ts.0, total));
        }
    }
    for (process, values) in counters {
        let parent = process.map(|process| tracks.process(packets, process));
        let track = tracks::counter(packets, "pages inserted into the page cache", "pages", parent);
        for (timestamp, value) in values {
            packets.count(track, timestamp, value);
        }
    }
}

fn launch(tables: &Tables, notes: &[String], packets: &mut Packets) {
    let manifest = &tables.manifest;
    let moment = |start, name, details| Event { start, end: None, category: "launch", name, details, stack: None };
    let mut events = Vec::new();
    if let Some(launch) = &manifest.launch {
        events.push(moment(launch.released.0, "exec released", Vec::new()));
        if let Some(ready) = launch.ready {
            events.push(moment(ready.0, "ready", vec![("when", Detail::Text(&launch.ready_when))]));
        }
    }
    for note in notes {
        events.push(moment(manifest.started.0, "note", vec![("text", Detail::Text(note))]));
    }
    if !events.is_empty() {
        let track = tracks::named(packets, "launch", None);
        packets.events(track, events);
    }
}
