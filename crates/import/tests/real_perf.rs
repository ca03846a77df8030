//! What perf itself records, read from perf.data and from what `perf script` prints of it: the same recording.
//!
//! Needs root, for switches on the whole machine, and perf; without them it says so.

use slowpath_analysis::call_stacks::CallStacks;
use slowpath_import::foreign::import_bytes;
use slowpath_recording::Tables;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Computes, and sleeps in between.
const WORK: &str = "
import time
value = 1
for _ in range(20):
    for _ in range(100_000): value = value * 31 % 65521
    time.sleep(0.002)
";

fn can_record() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let has_perf = Command::new("perf").arg("version").stdout(Stdio::null()).status().is_ok_and(|done| done.success());
    if !is_root || !has_perf {
        println!("skipped: needs root and perf");
    }
    is_root && has_perf
}

/// Records into `perf.data` of this directory, and prints it into `perf.txt`.
fn record(place: &Path, options: &[&str]) {
    let mut perf = Command::new("perf");
    perf.current_dir(place).stdin(Stdio::null()).stdout(File::create(place.join("perf.data")).unwrap());
    perf.args(["record", "-q", "-a", "-g", "-k", "CLOCK_MONOTONIC", "-c", "1", "-e"]);
    perf.arg("cpu-clock/period=1000000/,sched:sched_switch,sched:sched_wakeup").args(options);
    let done = perf.args(["--", "python3", "-c", WORK]).output().unwrap();
    assert!(done.status.success(), "{perf:?}: {}", String::from_utf8_lossy(&done.stderr));
    let mut perf = Command::new("perf");
    perf.current_dir(place).stdin(Stdio::null()).stdout(File::create(place.join("perf.txt")).unwrap());
    perf.args(["script", "--ns", "-F", "+pid,+period,+ip,+sym,+dso", "--show-task-events", "--show-mmap-events"]);
    let done = perf.args(["--show-lost-events", "-i", "perf.data"]).output().unwrap();
    assert!(done.status.success(), "{perf:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn imported(format: &str, path: &Path) -> Tables {
    let (tables, problem) = import_bytes(format, &fs::read(path).unwrap());
    assert_eq!(problem, None, "{format}");
    tables
}

/// Samples of each innermost file of code, with the process.
fn code(tables: &Tables) -> BTreeMap<(u32, String), usize> {
    let stacks = CallStacks::new(tables);
    let mut sums = BTreeMap::new();
    for row in &tables.cpu_samples {
        let place = stacks.path(row.stack).map(|path| &stacks.frames()[stacks.frame_number(path) as usize].place);
        *sums.entry((row.pid, place.map_or(String::new(), |place| place.name().to_string()))).or_default() += 1;
    }
    sums
}

#[test]
fn perf_data_and_what_perf_script_prints_of_it_make_the_same_recording() {
    if !can_record() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for options in [&["-o", "perf.data"][..], &["-z", "-o", "perf.data"], &["-o", "-"]] {
        record(place.path(), options);
        let by_data = imported("perf-data", &at("perf.data"));
        let by_script = imported("perf", &at("perf.txt"));
        let samples = |tables: &Tables| {
            let rows = tables.cpu_samples.iter().map(|row| (row.ts, row.pid, row.tid, row.cpu));
            let mut rows: Vec<_> = rows.collect();
            rows.sort();
            rows
        };
        assert!(samples(&by_data).len() > 50, "{options:?}: {}", by_data.cpu_samples.len());
        assert_eq!(samples(&by_data), samples(&by_script), "{options:?}");
        // Of a call chain that runs into a register that is no frame pointer, perf script prints no frame; we keep the sound ones.
        let (mut ours, mut theirs) = (code(&by_data), code(&by_script));
        let cut: BTreeSet<u32> = theirs.keys().filter(|(_, file)| file.is_empty()).map(|(pid, _)| *pid).collect();
        ours.retain(|(pid, _), _| !cut.contains(pid));
        theirs.retain(|(pid, _), _| !cut.contains(pid));
        assert!(!theirs.is_empty(), "{options:?}");
        assert_eq!(ours, theirs, "{options:?}");
        let waits = |tables: &Tables| {
            let rows = tables.off_cpu.iter().map(|row| (row.ts, row.tid, row.duration, row.runnable));
            let mut rows: Vec<_> = rows.collect();
            rows.sort();
            rows
        };
        assert!(!by_data.off_cpu.is_empty(), "{options:?}");
        assert_eq!(waits(&by_data), waits(&by_script), "{options:?}");
        let manifest = &by_data.manifest;
        assert_eq!(manifest.losses.of("perf"), by_script.manifest.losses.of("perf"), "{options:?}");
        assert_eq!((manifest.losses.of("perf_out_of_order"), manifest.cpu_sample_hz()), (0, Some(1000)), "{options:?}");
        let host = &manifest.host;
        assert!(host.cpus > 0 && !host.kernel.is_empty() && host.page_size.is_power_of_two(), "{options:?}: {host:?}");
    }
}
