//! `slowpath ipc latency -trace -o DIR`: the trace of a miss is a recording, on which the commands for recordings work.

use crate::ipc_ended::instances;
use crate::running::*;
use slowpath_ipc::latency::work::burn;
use slowpath_ipc::scheduling::{allowed_cpus, become_fifo, pin};
use slowpath_tables::CpuEventKind;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether misses can be made and traced here; says why not.
fn possible() -> bool {
    if !root() || instances(0).is_none() {
        println!("skipped: no tracefs");
        return false;
    }
    let is_real_time = std::thread::spawn(|| become_fifo(98)).join().unwrap();
    if let Err(error) = is_real_time {
        println!("skipped: SCHED_FIFO: {error}");
        return false;
    }
    true
}

/// Runs `work` while a real-time thread takes each CPU for 8 ms now and then: a caller outranks it, a server does not.
fn beside_hogs<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for cpu in allowed_cpus().unwrap() {
            let done = &done;
            scope.spawn(move || {
                pin(cpu).unwrap();
                become_fifo(98).unwrap();
                while !done.load(Ordering::Relaxed) {
                    burn(8_000_000);
                    std::thread::sleep(Duration::from_millis(40));
                }
            });
        }
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn latency(directory: &Path, deadline_us: &str, iterations: &str) -> Done {
    let words = ["ipc", "latency", "-i", iterations, "-deadline_us", deadline_us, "-trace", "--json", "-o"];
    run(slowpath(words).arg(directory))
}

#[test]
fn a_miss_is_analysed_exported_and_reported() {
    if !possible() {
        return;
    }
    let place = place();
    let directory = place.path().join("miss");
    let done = beside_hogs(|| latency(&directory, "3000", "20000"));
    assert_eq!(done.code(), 1, "{done:?}");
    let result = done.json();
    assert_eq!(result["recording"].as_str(), directory.to_str());
    let explained = &result["trace"];

    let analysis = run(slowpath(["analyze", "--json"]).arg(&directory));
    analysis.succeeds();
    let analysis = analysis.json();
    assert_eq!(analysis["command"][2], "latency");
    assert!(analysis["ledger"]["threads"].as_array().is_some_and(|threads| threads.len() > 2), "{analysis}");
    assert!(analysis["round_trips"].as_array().is_some_and(|pairs| !pairs.is_empty()), "{analysis}");
    let lacks = analysis["unavailable"].as_array().unwrap();
    assert!(lacks.iter().any(|gap| gap["what"] == "what the trace of the miss lacks"), "{lacks:?}");

    // What the timeline says that a thread waited for a CPU is in the table, of the same threads.
    let tables = tables(&directory);
    let part = explained["timeline"].as_array().unwrap().iter().filter(|part| part["state"] == "runnable");
    let longest = part.filter_map(|part| part["us"].as_f64()).fold(0.0, f64::max);
    // Behind a hog for 8 ms. Another miss may come first: a hypervisor takes the CPU away, or interrupts do.
    let is_of_a_task = ["cpu_busy", "no_inheritance"].iter().any(|cause| explained["cause"] == *cause);
    assert!(longest > 0.0 || !is_of_a_task, "{explained:#}");
    // A part ends where the transaction turns to the other thread: the whole wait, in the table, may be longer and is not shorter.
    let whole = tables.off_cpu.iter().filter(|row| row.runnable.0 as f64 / 1000.0 > longest - 100.0);
    let Some(waited) = whole.min_by_key(|row| row.runnable) else {
        panic!("{longest} us in the timeline, and no row has such a wait: {:?}", tables.off_cpu);
    };
    // Who had a CPU meanwhile is in the table: the hog, or what else is busy on this machine. Some kernels lose switches away from an idle
    // task, and with them since when the next one ran: that is counted as lost.
    let end = waited.ts.0 + waited.duration.0;
    let begin = end - waited.runnable.0;
    let mut had: BTreeMap<u32, u64> = BTreeMap::new();
    let others = tables.cpu_events.iter().filter(|row| row.kind == CpuEventKind::Task && row.tid != Some(waited.tid));
    for row in others {
        let Some(duration) = row.duration else { continue };
        let shared = (row.ts.0 + duration.0).min(end).saturating_sub(row.ts.0.max(begin));
        *had.entry(row.cpu).or_default() += shared;
    }
    let is_whole = had.values().any(|time| *time * 10 >= waited.runnable.0 * 9);
    let losses = tables.manifest.losses.of("cpu_events");
    assert!(is_whole || losses > 0, "of {} ns {had:?}, and nothing is lost", waited.runnable.0);

    let trace = place.path().join("miss.pftrace");
    run(slowpath(["export", "--to", "perfetto", "-o"]).arg(&trace).arg(&directory)).succeeds();
    let bytes = std::fs::read(&trace).unwrap();
    for track in ["threads", "interrupts", "P0-server", "off CPU"] {
        assert!(bytes.windows(track.len()).any(|window| window == track.as_bytes()), "no track {track}");
    }
    let page = place.path().join("miss.html");
    run(slowpath(["report", "-o"]).arg(&page).arg(&directory)).succeeds();
    assert!(std::fs::read_to_string(&page).unwrap().contains("P0-server"));
    // It is written over by nobody.
    latency(&directory, "3000", "5").fails_with(2, &["is not empty"]);
}

#[test]
fn without_a_miss_nothing_is_written() {
    if !possible() {
        return;
    }
    let place = place();
    let directory = place.path().join("none");
    let done = latency(&directory, "60000000", "5");
    assert!(done.json()["recording"].is_null() && done.stderr.contains("missed the deadline"), "{done:?}");
    assert!(!directory.exists());
}
