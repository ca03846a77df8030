//! Texts of the kernel that hold names, paths and words of other programs.

use crate::documents;
use slowpath_context::Snapshot;
use slowpath_ipc::latency::sample::{Caller, Sample};
use slowpath_ipc::latency::{Missed, PairSamples, Process};
use slowpath_ipc::trace::beside::Beside;
use slowpath_ipc::trace::explain::explain;
use slowpath_ipc::trace::recorded::{Owner, recorded};
use slowpath_recording::Manifest;
use slowpath_tables::{Nanos, OffCpuReason};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Files that a copy of `/proc/PID` may hold and factors read, in the order in which inputs have them.
const FILES: &[&str] = &[
    "status",
    "stat",
    "limits",
    "cgroup",
    "environ",
    "maps",
    "mountinfo",
    "sched",
    "numa_maps",
    "oom_score_adj",
    "smaps",
    "personality",
    "timerslack_ns",
    "autogroup",
    "attr/current",
    "uid_map",
    "cmdline",
    "loginuid",
    "wchan",
    "smaps_rollup",
];

thread_local! {
    static DIRECTORY: OnceCell<TempDir> = const { OnceCell::new() };
}

/// A directory of copied files: a part for each of [`FILES`], ended by a byte 0xff.
pub fn context_files(bytes: &[u8]) {
    DIRECTORY.with(|directory| {
        let directory = directory.get_or_init(|| {
            let memory = Path::new("/dev/shm");
            let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
            let made = made.expect("a directory for inputs");
            fs::create_dir(made.path().join("attr")).expect("a directory for inputs");
            made
        });
        let mut parts = bytes.split(|byte| *byte == 0xff);
        for file in FILES {
            fs::write(directory.path().join(file), parts.next().unwrap_or_default()).expect("an input is written");
        }
        if let Ok(context) = Snapshot::of_directory(directory.path()) {
            let text = serde_json::to_vec(&context).expect("a context is JSON");
            assert_eq!(Snapshot::of_json(&text).ok().as_ref(), Some(&context), "it can be saved");
            documents::contexts(context.clone(), &context);
        }
    });
}

/// Mounts, as the recorder and the lab read them.
pub fn mountinfo(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(slowpath_lab::foreign::mountinfo(bytes) <= lines);
    let mounts = slowpath_capture::parse_mountinfo(&String::from_utf8_lossy(bytes));
    assert!(mounts.len() <= lines);
    slowpath_capture::Decoder::new(mounts, Some(1));
}

/// Files of `/proc/PID` of others.
pub fn proc_text(bytes: &[u8]) {
    if let Some(line) = slowpath_process::StatLine::parse(bytes) {
        assert!(line.name().len() + 2 <= bytes.len());
        line.start();
    }
    let text = String::from_utf8_lossy(bytes);
    for field in ["Pss", "VmHWM", "Name"] {
        slowpath_process::size_field(&text, field);
    }
    for mapping in slowpath_process::mappings(bytes) {
        assert!(mapping.length() > 0 && !mapping.name.contains(&b'\n'));
        assert_eq!(mapping.path().is_some(), mapping.name.starts_with(b"/"));
    }
    slowpath_capture::foreign::proc_text(&text);
    slowpath_artifacts::foreign::proc_text(bytes, &text);
    slowpath_syscall_cost::ThreadState::parse(&text);
}

/// A trace of the kernel around a transaction of thread 10 with thread 20 that took from 1.001 s to 1.011 s.
pub fn kernel_trace(bytes: &[u8]) {
    const START: u64 = 1_001_000_000;
    const END: u64 = 1_011_000_000;
    let sample = Sample {
        caller: Caller::Fifo,
        intended: START,
        start: START,
        served: START + 1_000_000,
        end: END,
        client_thread: 10,
        server_thread: 20,
        client_cpu: 0,
        server_cpu: 1,
        server_policy: 0,
        server_priority: 0,
        server_nice: 0,
    };
    let beside = Beside::default();
    let explanation = explain(bytes, &Missed { sample, client: 10, server: 20, beside });
    let covered: f64 = explanation.timeline.iter().map(|part| part.us).sum();
    assert!((covered - explanation.took_us).abs() < 1.0, "the timeline has gaps or overlaps: {explanation:?}");
    recorded_trace(bytes, sample);
}

/// The same as a recording: a thread is away once at a time, and no longer than the trace is.
fn recorded_trace(bytes: &[u8], sample: Sample) {
    let (client, server) = (Process { pid: 10, started: 0 }, Process { pid: 20, started: 0 });
    let (samples, helpers) = (vec![sample], Vec::new());
    let pair = PairSamples { client, server, helpers, samples, ended: None, fifo_refused: None, missed: None };
    let tables = recorded(bytes, &[pair], OffCpuReason::PipeOrSocket, Owner::default(), Manifest::default());
    let ended = tables.manifest.ended.unwrap_or_default();
    let mut until: HashMap<u32, Nanos> = HashMap::new();
    for row in &tables.off_cpu {
        let end = row.ts + row.duration;
        assert!(row.runnable <= row.duration && end <= ended, "{row:?}");
        assert!(until.insert(row.tid, end).is_none_or(|before| before <= row.ts), "{row:?} overlaps");
    }
}
