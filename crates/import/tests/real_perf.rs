//! What perf itself records, read from perf.data and from what `perf script` prints of it: the same recording.
//!
//! Needs root, for switches on the whole machine, and perf; without them it says so.

use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_import::foreign::{import_bytes, import_bytes_with_names};
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

/// Runs perf in this directory; what it prints goes to a file there.
fn perf(place: &Path, prints: &str, arguments: &[&[&str]]) {
    let mut perf = Command::new("perf");
    perf.current_dir(place).stdin(Stdio::null()).stdout(File::create(place.join(prints)).unwrap());
    let done = perf.args(arguments.concat()).output().unwrap();
    assert!(done.status.success(), "{perf:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Without -N, files would go to the cache of whoever runs this.
const RECORD: &[&str] = &["record", "-q", "-N", "-g", "-k", "CLOCK_MONOTONIC", "-c", "1"];
const SCRIPT: &[&str] = &[
    "script",
    "--ns",
    "-F",
    "+pid,+period,+ip,+sym,+dso",
    "--show-task-events",
    "--show-mmap-events",
    "-i",
    "perf.data",
];

/// Records into `perf.data` of this directory, and prints it into `perf.txt`.
fn record(place: &Path, options: &[&str]) {
    let events = ["-a", "-e", "cpu-clock/period=1000000/,sched:sched_switch,sched:sched_wakeup"];
    perf(place, "perf.data", &[RECORD, &events, options, &["--", "python3", "-c", WORK]]);
    perf(place, "perf.txt", &[SCRIPT, &["--show-lost-events"]]);
}

/// Events that perf's records of this directory's `perf.data` say are lost: where there was place again, which is all that perf script
/// prints, and in the end, by the kernel's counters.
fn lost_by_dump(place: &Path) -> [u64; 2] {
    // Only the name of each sample: none of its functions is looked up.
    perf(place, "dump.txt", &[&["script", "-D", "-F", "comm", "-i", "perf.data"]]);
    let dump = fs::read(place.join("dump.txt")).unwrap();
    ["PERF_RECORD_LOST: ", "PERF_RECORD_LOST_SAMPLES: "].map(|kind| {
        let lines = dump.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
        let said = lines.filter(|line| line.contains(kind));
        said.map(|line| line.rsplit(':').next().unwrap().trim().parse::<u64>().unwrap()).sum()
    })
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
fn what_perf_says_twice_is_lost_counts_once() {
    if !can_record() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    // One page for each CPU, and a sample each 20 us: more than fits until perf comes to it.
    let events = ["-a", "-m", "1", "-e", "cpu-clock/period=20000/", "-o", "perf.data"];
    perf(place.path(), "out", &[RECORD, &events, &["--", "sleep", "0.2"]]);
    let [said, counted] = lost_by_dump(place.path());
    assert!(said.max(counted) > 0, "perf lost nothing");
    let losses = imported("perf-data", &place.path().join("perf.data")).manifest.losses;
    assert_eq!(losses.0.get("perf.any"), Some(&said.max(counted)), "{said} {counted}");
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
        let lost = |tables: &Tables| tables.manifest.losses.0.get("perf.any").copied();
        let [said, counted] = lost_by_dump(place.path());
        let known = (said > 0).then_some(said);
        assert_eq!(
            (lost(&by_data), lost(&by_script)),
            (known.max((counted > 0).then_some(counted)), known),
            "{options:?}"
        );
        let late = manifest.losses.0.get("perf_out_of_order.any");
        assert_eq!((late, manifest.cpu_sample_hz()), (None, Some(1000)), "{options:?}");
        let host = &manifest.host;
        assert!(host.cpus > 0 && !host.kernel.is_empty() && host.page_size.is_power_of_two(), "{options:?}: {host:?}");
    }
}

/// Functions of different cost, local and exported ones, and some of the kernel's work.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <unistd.h>
static volatile unsigned long value = 1;
#define WORK(name, rounds) \
    __attribute__((noinline)) void name(void) { \
        for (long at = 0; at < (rounds) * 100000L; at++) value = value * 31 + at; \
    }
WORK(costs_most, 30)
static WORK(costs_much, 24)
WORK(costs_some, 18)
static WORK(costs_little, 12)
WORK(costs_less, 6)
int main(void) {
    char bytes[4096];
    int zero = open("/dev/zero", O_RDONLY);
    for (int round = 0; round < 30; round++) {
        costs_most(); costs_much(); costs_some(); costs_little(); costs_less();
        for (int at = 0; at < 2000; at++) if (read(zero, bytes, sizeof bytes) < 0) return 1;
    }
    return 0;
}
"#;

/// Function of each sample's innermost frame, where it has a name, and the file of that; in the order of time.
fn functions(tables: &Tables) -> Vec<(String, Option<String>)> {
    let stacks = CallStacks::new(tables);
    let mut samples: Vec<_> = tables.cpu_samples.iter().map(|row| (row.ts, row.tid, row.stack)).collect();
    samples.sort();
    let of = |stack| {
        let Some(path) = stacks.path(stack) else { return (String::new(), None) };
        let frame = &stacks.frames()[stacks.frame_number(path) as usize];
        let function = frame.functions.last().filter(|function| function.named);
        (frame.place.name().into_owned(), function.map(|function| function.name.clone().into_owned()))
    };
    samples.into_iter().map(|(_, _, stack)| of(stack)).collect()
}

/// The five functions of a file with the most samples.
fn top_five(functions: &[(String, Option<String>)], of: &str) -> Vec<(usize, String)> {
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for name in functions.iter().filter(|(file, _)| file == of).filter_map(|(_, name)| name.as_deref()) {
        *sums.entry(name).or_default() += 1;
    }
    let mut sums: Vec<_> = sums.into_iter().map(|(name, sum)| (sum, name.to_owned())).collect();
    sums.sort_by(|one, other| other.cmp(one));
    sums.truncate(5);
    sums
}

#[test]
fn functions_of_perf_data_are_those_that_perf_script_names() {
    if !can_record() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let program = at("program");
    fs::write(at("program.c"), PROGRAM).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-Wl,--build-id", "-o"]).args([&program, &at("program.c")]).status();
    if !compiled.is_ok_and(|done| done.success()) {
        println!("skipped: needs a C compiler");
        return;
    }
    let events = ["-e", "cpu-clock/period=1000000/", "-o", "perf.data"];
    perf(place.path(), "out", &[RECORD, &events, &["--", program.to_str().unwrap()]]);
    perf(place.path(), "perf.txt", &[SCRIPT, &["--no-inline"]]);
    let perf_data = fs::read(at("perf.data")).unwrap();
    let (tables, problem) = import_bytes_with_names("perf-data", &perf_data, &[]);
    assert_eq!(problem, None);
    let (ours, theirs) = (functions(&tables), functions(&imported("perf", &at("perf.txt"))));
    assert_eq!(ours.len(), theirs.len());
    let own = "program";
    let top = top_five(&ours, own);
    assert_eq!(top, top_five(&theirs, own));
    let names: Vec<&str> = top.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["costs_most", "costs_much", "costs_some", "costs_little", "costs_less"]);
    // Where both have a name in the kernel, it is of the same function, which may have several.
    let in_kernel: Vec<_> =
        ours.iter().zip(&theirs).filter(|((file, name), _)| file == "[kernel]" && name.is_some()).collect();
    let alike = in_kernel.iter().filter(|(ours, theirs)| ours == theirs).count();
    println!("{} samples in the kernel, {alike} with the same name", in_kernel.len());
    assert!(!in_kernel.is_empty() && alike * 10 >= in_kernel.len() * 9, "{in_kernel:#?}");
    // Another file at the same path has no say.
    fs::write(at("program.c"), format!("{PROGRAM}\nint another;")).unwrap();
    let compiled = Command::new("cc").args(["-O0", "-Wl,--build-id", "-o"]).args([&program, &at("program.c")]).status();
    assert!(compiled.is_ok_and(|done| done.success()));
    let (tables, _) = import_bytes_with_names("perf-data", &perf_data, &[]);
    assert_eq!(top_five(&functions(&tables), own), []);
    let gap = tables.manifest.unavailable.iter().find(|gap| gap.what.contains("the names of functions"));
    assert!(gap.is_some_and(|gap| gap.reason.contains("/program, ") && gap.reason.contains("changed")), "{gap:?}");
}
