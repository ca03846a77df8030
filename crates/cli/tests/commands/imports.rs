//! `slowpath import`: the same work seen by slowpath, by perf and by strace gives the same answers; and damaged traces.

use crate::running::*;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::{Recording, Tables};
use slowpath_tables::FileKey;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Reads a file of 4 MiB ten times in a thread that sleeps between, while the first thread computes without memory of
/// its own, so that most of the time goes to the interpreter's code, and no two files of code have nearly as much.
const WORK: &str = "
import sys, threading, time
def read():
    for _ in range(10):
        with open(sys.argv[1], 'rb', buffering=0) as file:
            while file.read(65536): pass
        time.sleep(0.02)
thread = threading.Thread(target=read); thread.start()
value = 1
for _ in range(8_000_000): value = value * 31 % 65521
thread.join()
";
const BYTES: u64 = 4 << 20;
/// Two tools see one switch at moments that are not further apart, in ns: they are called one after the other.
const NEAR: u64 = 200_000;

/// Runs a tool, which is one of the packages that tests need.
#[track_caller]
fn tool(command: &mut Command) {
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn import(trace: &Path, recording: &Path) -> Tables {
    run(slowpath(["import", "--quiet"]).arg(trace).arg("-o").arg(recording)).succeeds();
    Recording::open(recording).unwrap().tables().unwrap()
}

/// Bytes that were read of each file below `place`.
fn bytes_read(tables: &Tables, place: &Path) -> BTreeMap<String, u64> {
    let paths: HashMap<FileKey, &str> = tables.files.iter().map(|file| (file.file(), file.path.as_str())).collect();
    let mut sums = BTreeMap::new();
    for read in &tables.reads {
        if let Some(path) = paths.get(&read.file()).filter(|path| Path::new(path).starts_with(place)) {
            *sums.entry((*path).to_owned()).or_default() += read.result.max(0).unsigned_abs();
        }
    }
    sums
}

/// Samples of each innermost file of code of the python processes, most first.
fn code(tables: &Tables) -> Vec<(String, usize)> {
    let stacks = CallStacks::new(tables);
    let mut sums: BTreeMap<String, usize> = BTreeMap::new();
    let python: Vec<u32> =
        tables.execs.iter().filter(|exec| exec.filename.contains("python3")).map(|exec| exec.pid).collect();
    for row in tables.cpu_samples.iter().filter(|row| python.contains(&row.pid)) {
        let Some(path) = stacks.path(row.stack) else { continue };
        let frame = &stacks.frames()[stacks.frame_number(path) as usize];
        *sums.entry(frame.place.name().rsplit('/').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    sums
}

#[test]
fn one_workload_seen_by_slowpath_perf_and_strace_gives_the_same_files_code_and_waits() {
    if !root() {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    fs::write(at("data"), vec![7u8; BYTES as usize]).unwrap();
    fs::write(at("work.py"), WORK).unwrap();
    let work = [Path::new("/usr/bin/python3").to_owned(), at("work.py"), at("data")];

    // perf watches everything while slowpath records the launch, so both see the very same threads.
    let mut perf = Command::new("perf");
    // The clock of a recording, so that intervals can be laid beside each other.
    perf.args(["record", "-q", "-a", "-g", "-k", "CLOCK_MONOTONIC", "-c", "1", "-e"]);
    perf.arg("cpu-clock/period=1000000/,sched:sched_switch,sched:sched_wakeup")
        .arg("-o")
        .arg(at("perf.data"))
        .arg("--");
    perf.arg(SLOWPATH).args(["record", "--quiet", "--off-cpu", "-F", "997", "--user", "root", "-o"]).arg(at("own"));
    perf.arg("--").args(&work);
    for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER"] {
        perf.env_remove(name);
    }
    tool(&mut perf);
    let script = fs::File::create(at("perf.txt")).unwrap();
    let mut perf = Command::new("perf");
    perf.args([
        "script",
        "-F",
        "+pid,+period,+ip,+sym,+dso",
        "--show-task-events",
        "--show-mmap-events",
        "--show-lost-events",
        "-i",
    ]);
    let done = perf.arg(at("perf.data")).stdout(script).stderr(Stdio::null()).status().unwrap();
    assert!(done.success());
    tool(Command::new("strace").args(["-f", "-T", "-ttt", "-y", "-o"]).arg(at("strace.txt")).args(&work));

    let own = Recording::open(at("own")).unwrap().tables().unwrap();
    let by_perf = import(&at("perf.txt"), &at("by_perf"));
    let by_strace = import(&at("strace.txt"), &at("by_strace"));

    // The same files by bytes read.
    let data = at("data").to_string_lossy().into_owned();
    assert_eq!(bytes_read(&own, &at("data")), BTreeMap::from([(data, 10 * BYTES)]));
    assert_eq!(bytes_read(&by_strace, &at("data")), bytes_read(&own, &at("data")));

    // The same code is hottest, with most of the samples of either tool.
    let (ours, theirs) = (code(&own), code(&by_perf));
    let most = |found: &[(String, usize)]| {
        let all: usize = found.iter().map(|(_, samples)| samples).sum();
        found.first().filter(|(_, samples)| samples * 2 > all).map(|(name, _)| name.clone())
    };
    assert!(most(&ours).is_some() && most(&ours) == most(&theirs), "{ours:?} {theirs:?}");

    // Time off the CPU: intervals of the workload's threads that both saw. Some kernels lose switches of idle tasks, and with them the
    // end of an interval, and perf what it has no room for, of a busy machine: what it lacks therefore is among its losses.
    let tids: Vec<u32> = own.forks.iter().filter(|fork| fork.thread).map(|fork| fork.tid).collect();
    assert!(!tids.is_empty());
    // Stolen time is the hypervisor's, of which the scheduler's events say nothing.
    let ours = own.off_cpu.iter().filter(|row| row.reason != slowpath_tables::OffCpuReason::Stolen);
    let ours: Vec<_> = ours.filter(|row| tids.contains(&row.tid)).collect();
    // Of each other the nearest: where perf lacks an interval, the one before or after it is near too.
    let same = |row: &slowpath_tables::OffCpu| {
        let of_thread = by_perf.off_cpu.iter().filter(|other| other.tid == row.tid);
        let other = of_thread.min_by_key(|other| other.ts.0.abs_diff(row.ts.0))?;
        let back = ours.iter().filter(|one| one.tid == row.tid).min_by_key(|one| one.ts.0.abs_diff(other.ts.0))?;
        (back.ts == row.ts && other.ts.0.abs_diff(row.ts.0) < NEAR).then_some(other)
    };
    let pairs: Vec<_> = ours.iter().filter_map(|row| Some((row.duration.0, same(row)?.duration.0))).collect();
    let missing = (ours.len() - pairs.len()) as u64;
    let losses = &by_perf.manifest.losses;
    let lost = losses.of("off_cpu");
    assert!(missing <= lost, "{missing} of {} intervals are not there, {losses:?}", ours.len());
    let (own_sum, perf_sum) = pairs.iter().fold((0, 0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
    assert!(own_sum > 0 && own_sum.abs_diff(perf_sum) <= own_sum / 50, "{own_sum} ns, {perf_sum} ns by perf");
}

#[test]
fn perf_data_is_read_in_the_sandbox_whose_places_it_seeks() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/import_perf_data/seed");
    let bytes = fs::read(seed).unwrap();
    fs::write(at("perf.data"), &bytes).unwrap();
    fs::write(at("cut.data"), &bytes[..bytes.len() / 2]).unwrap();
    for own in [place.path().to_owned(), at("perf.data"), at("cut.data")] {
        let invoker = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        std::os::unix::fs::chown(own, invoker, None).unwrap();
    }
    let tables = import(&at("perf.data"), &at("recording"));
    assert_eq!((tables.cpu_samples.len(), tables.off_cpu.len(), tables.manifest.host.cpus), (2, 1, 2));
    let done = run(slowpath(["import", "--quiet"]).arg(at("cut.data")).arg("-o").arg(at("cut")));
    let byte = format!("cut.data, byte {}: expected ", bytes.len() / 2);
    done.fails_with(2, &[&byte, "what was read until then is in the recording"]);
}

#[test]
fn an_imported_recording_is_one_for_every_command() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let trace = "7 1700000000.000100 execve(\"/usr/bin/cat\", [\"cat\"], 0x7f) = 0 <0.0002>\n\
        7 1700000000.000400 openat(AT_FDCWD, \"/tmp/\\33[31mdata\", O_RDONLY) = 3 <0.00001>\n\
        7 1700000000.000500 read(3, \"x\"..., 4096) = 4096 <0.00002>\n";
    fs::write(at("trace"), trace).unwrap();
    for own in [place.path().to_owned(), at("trace")] {
        let invoker = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        std::os::unix::fs::chown(own, invoker, None).unwrap();
    }
    let done = run(slowpath(["import", "--quiet", "--json"]).arg(at("trace")).arg("-o").arg(at("recording")));
    done.succeeds();
    let printed = done.json();
    assert_eq!((printed["schema"].as_str(), printed["format"].as_str()), (Some("slowpath-import/1"), Some("strace")));
    assert_eq!((printed["rows"]["reads"].as_u64(), printed["problem"].is_null()), (Some(1), true));
    run(slowpath(["analyze"]).arg(at("recording"))).succeeds();
    run(slowpath(["analyze", "--json"]).arg(at("recording"))).succeeds();
    run(slowpath(["import", "--quiet"]).arg(at("trace")).arg("-o").arg(at("again"))).succeeds();
    run(slowpath(["compare"]).arg(at("recording")).arg(at("again"))).succeeds();
    run(slowpath(["report"]).arg(at("recording")).arg("-o").arg(at("report.html"))).succeeds();
    for format in ["perfetto", "chrome"] {
        run(slowpath(["export", "--quiet", "--to", format]).arg(at("recording")).arg("-o").arg(at(format))).succeeds();
    }
    let csv = run(slowpath(["export", "--quiet", "--to", "csv", "--table", "files"]).arg(at("recording")));
    csv.succeeds();
    assert!(csv.stdout.contains("/tmp/") && csv.stdout.contains("data"), "{csv:?}");
}

#[test]
fn a_damaged_trace_names_its_place_and_keeps_what_was_read() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let good = "7 1700000000.000100 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.00001>\n";
    fs::write(at("trace"), format!("{good}7 1700000000.0002 read(3\n")).unwrap();
    fs::write(at("none"), "nothing of the kind\n").unwrap();
    for own in [place.path().to_owned(), at("trace"), at("none")] {
        let invoker = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        std::os::unix::fs::chown(own, invoker, None).unwrap();
    }
    let done = run(slowpath(["import", "--quiet"]).arg(at("trace")).arg("-o").arg(at("recording")));
    let line = format!("line 2 (byte {}): expected a call as strace -T prints it", good.len());
    done.fails_with(2, &["trace, ", &line, "what was read until then is in the recording"]);
    assert_eq!(Recording::open(at("recording")).unwrap().tables().unwrap().opens.len(), 1);
    let done = run(slowpath(["import", "--quiet"]).arg(at("none")).arg("-o").arg(at("other")));
    done.fails_with(2, &["no trace that can be imported", "strace -f -T -ttt"]);
    assert!(!at("other").exists(), "an empty directory is left");
}
