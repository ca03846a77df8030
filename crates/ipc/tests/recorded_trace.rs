//! A miss as a recording: what its tables say beside what the text of the kernel's trace says, read once more and otherwise.
//!
//! Needs root and tracefs; skipped with the reason otherwise. `SLOWPATH_KEEP_TRACE=FILE` keeps the text.

use slowpath_ipc::latency::work::burn;
use slowpath_ipc::latency::{PairSamples, Plan, run};
use slowpath_ipc::scheduling::{allowed_cpus, become_fifo, pin};
use slowpath_ipc::trace::Instance;
use slowpath_ipc::trace::recorded::{Owner, recorded, write};
use slowpath_ipc::transport::named;
use slowpath_recording::{Manifest, Recording, Tables};
use slowpath_tables::{CpuEventKind, OffCpuReason};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs at most, each of half a second.
const ATTEMPTS: usize = 20;

/// A real-time thread on each CPU that takes it for 8 ms now and then: the caller outranks it, the server does not.
fn hogs<T>(cpus: &[usize], work: impl FnOnce() -> T) -> Option<T> {
    let (done, refused) = (AtomicBool::new(false), AtomicBool::new(false));
    let result = std::thread::scope(|scope| {
        for cpu in cpus {
            let (done, refused) = (&done, &refused);
            scope.spawn(move || {
                if pin(*cpu).is_err() || become_fifo(98).is_err() {
                    refused.store(true, Ordering::Relaxed);
                    return;
                }
                while !done.load(Ordering::Relaxed) {
                    burn(8_000_000);
                    std::thread::sleep(Duration::from_millis(40));
                }
            });
        }
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    });
    (!refused.load(Ordering::Relaxed)).then_some(result)
}

/// A miss with its trace.
fn missed() -> Option<(Vec<u8>, Vec<PairSamples>)> {
    let cpus = allowed_cpus().unwrap();
    let instance = match Instance::start() {
        Ok(instance) => instance,
        Err(error) => {
            println!("skipped: {error}");
            return None;
        }
    };
    let plan = Plan { iterations: 20_000, deadline: Duration::from_millis(3), ..Plan::new(named("pipe").unwrap()) };
    let Some(pairs) = hogs(&cpus, || run(&plan, instance.stopper(), &|| false).unwrap()) else {
        println!("skipped: SCHED_FIFO is refused");
        return None;
    };
    assert!(pairs[0].missed.is_some(), "no miss beside hogs");
    Some((instance.text().unwrap().bytes, pairs))
}

/// Number behind `key`.
fn number(line: &str, key: &str) -> Option<u32> {
    line.split_once(key)?.1.split_whitespace().next()?.parse().ok()
}

/// The moments of the text, in us, at which a thread leaves a CPU and gets one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Move {
    Leaves,
    Gets,
}

fn moves(text: &str) -> BTreeMap<u32, Vec<(u64, Move)>> {
    let mut all: BTreeMap<u32, Vec<(u64, Move)>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains(": sched_switch: ")) {
        let stamp = line.split(": sched_switch: ").next().unwrap().split_whitespace().last().unwrap();
        let us: u64 = stamp.replace('.', "").parse().unwrap();
        let (before, after) = line.split_once(" ==> ").unwrap();
        all.entry(number(before, "prev_pid=").unwrap()).or_default().push((us, Move::Leaves));
        all.entry(number(after, "next_pid=").unwrap()).or_default().push((us, Move::Gets));
    }
    all
}

/// Times between leaving a CPU and getting one, of threads of the recording, from its begin on.
fn away_in(text: &str, tables: &Tables) -> BTreeSet<(u32, u64, u64)> {
    let threads: BTreeSet<u32> = tables.exits.iter().map(|row| row.tid).collect();
    let begin = tables.manifest.started.0 / 1000;
    let mut away = BTreeSet::new();
    for (tid, moves) in moves(text).into_iter().filter(|(tid, _)| threads.contains(tid)) {
        for two in moves.windows(2) {
            if let [(left, Move::Leaves), (back, Move::Gets)] = *two
                && back > left
                && left >= begin
            {
                away.insert((tid, left, back));
            }
        }
    }
    away
}

/// Checks a miss; whether it is one that shows enough: on a busy machine a call may be late before a hog makes it so, even the first.
fn agrees(bytes: &[u8], pairs: &[PairSamples]) -> bool {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let tables = recorded(bytes, pairs, OffCpuReason::PipeOrSocket, Owner::default(), Manifest::default());
    let expected = away_in(&text, &tables);
    let found: BTreeSet<(u32, u64, u64)> =
        tables.off_cpu.iter().map(|row| (row.tid, row.ts.0 / 1000, (row.ts + row.duration).0 / 1000)).collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:?} of {} are not in the recording", expected.len());
    // What it has beyond that begins or ends with a wake-up, where the trace has no switch: new threads, lost events, the end.
    let ended = tables.manifest.ended.unwrap();
    let beyond = tables.off_cpu.iter().filter(|row| {
        let key = (row.tid, row.ts.0 / 1000, (row.ts + row.duration).0 / 1000);
        !expected.contains(&key) && (row.ts + row.duration) < ended && row.reason != OffCpuReason::Runnable
    });
    let beyond = beyond.count() as u64;
    assert!(beyond <= tables.manifest.losses.of("off_cpu") + 4, "{beyond} rows are not in the trace");
    println!("{} waits in both, {beyond} with a lower bound, losses {:?}", expected.len(), tables.manifest.losses);

    // The same from the disk.
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("miss");
    write(&directory, tables.clone()).unwrap();
    let read = Recording::open(&directory).unwrap().tables().unwrap();
    assert_eq!((&read.off_cpu, &read.cpu_events, &read.exits), (&tables.off_cpu, &tables.cpu_events, &tables.exits));
    assert_eq!(read.manifest.ended, tables.manifest.ended);

    // The longest wait for a CPU within the transaction that missed is the hog's burst.
    let missed = pairs[0].missed.as_ref().unwrap();
    let (from, to) = (missed.sample.start, missed.sample.end);
    let of_miss = tables.off_cpu.iter().filter(|row| row.ts.0 + row.duration.0 > from && row.ts.0 < to);
    let is_long = of_miss.max_by_key(|row| row.runnable).is_some_and(|longest| longest.runnable.0 > 500_000);
    let mut ran = tables.cpu_events.iter().filter(|row| row.kind == CpuEventKind::Task && row.value == Some(1));
    // The hogs have priority 1 in the kernel.
    expected.len() > 5 && is_long && ran.next().is_some()
}

#[test]
fn a_miss_is_a_recording_whose_times_off_the_cpu_are_those_of_the_trace() {
    for _ in 0..ATTEMPTS {
        let Some((bytes, pairs)) = missed() else { return };
        if let Some(file) = std::env::var_os("SLOWPATH_KEEP_TRACE") {
            std::fs::write(file, &bytes).unwrap();
        }
        if agrees(&bytes, &pairs) {
            return;
        }
    }
    panic!("no miss by a hog in {ATTEMPTS} runs");
}
