//! The time ledger of `slowpath analyze`, against what threads of known behaviour say of themselves by the kernel's accounts.

use crate::recorded_case::analyzed;
use crate::running::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Threads that each do one thing. At its end each says its id, its time on the CPU and what schedstat has of it.
const PROGRAM: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/threads/threads.c"));

/// What a thread said of itself, in ms.
#[derive(Debug)]
struct Said {
    tid: u64,
    cpu: f64,
    ran: f64,
}

fn compiled(place: &Path) -> String {
    let (source, program) = (place.join("threads.c"), place.join("threads"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut cc = Command::new("cc");
    assert!(cc.args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).status().unwrap().success());
    program.to_str().unwrap().to_owned()
}

fn said(text: &str) -> BTreeMap<String, Said> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<f64>().unwrap();
        (words[0].to_owned(), Said { tid: words[1].parse().unwrap(), cpu: number(2), ran: number(3) })
    };
    text.lines().map(line).collect()
}

fn number(value: &Value) -> f64 {
    value["value"].as_f64().unwrap_or_else(|| panic!("{value}"))
}

fn time(thread: &Value, category: &str) -> f64 {
    let rows = thread["rows"].as_array().unwrap();
    rows.iter().find(|row| row["category"] == category).map_or(0.0, |row| number(&row["time"]))
}

fn of(ledger: &Value, tid: u64) -> &Value {
    ledger["threads"].as_array().unwrap().iter().find(|one| one["tid"] == tid).unwrap()
}

#[track_caller]
fn agrees(what: &str, value: f64, expected: f64, slack_ms: f64) {
    assert!((value - expected).abs() <= expected * 0.02 + slack_ms, "{what}: {value} ms, expected {expected} ms");
}

/// The ledger of a recording that lost no switch, with what its command printed. Kernels are known that tell no switch away from certain
/// tasks, of which one may run before a thread at any time; the recorder counts them, and the recording is made again. So it is where a
/// thread's last switch was not told, with which its name comes.
fn undisturbed(place: &Path, recorded: impl Fn(&Path) -> Done) -> (PathBuf, Done, Value) {
    for number in 0..8 {
        let out = place.join(format!("out-{number}"));
        let done = recorded(&out);
        done.succeeds();
        let found = analyzed(&out);
        let losses = found["losses"].as_object().unwrap();
        let lost: Vec<&String> = losses.iter().filter(|(_, lost)| **lost != 0).map(|(kind, _)| kind).collect();
        let nameless =
            found["ledger"]["threads"].as_array().unwrap().iter().filter(|one| one["thread"].is_null()).count();
        if lost.is_empty() && nameless == 0 {
            return (out, done, found["ledger"].clone());
        }
        assert!(lost.iter().all(|kind| *kind == "off_cpu"), "{losses:?}");
        println!("disturbed: {losses:?}, {nameless} threads without a name");
    }
    panic!("every recording was disturbed");
}

/// Every thread's rows and its unexplained part make its wall time, and that part is small.
#[track_caller]
fn adds_up(ledger: &Value, pid: u64) {
    let threads: Vec<&Value> = ledger["threads"].as_array().unwrap().iter().filter(|one| one["pid"] == pid).collect();
    assert_eq!(threads.len(), 8, "{ledger}");
    for thread in threads {
        let rows: f64 = thread["rows"].as_array().unwrap().iter().map(|row| number(&row["time"])).sum();
        let sum = rows + number(&thread["unexplained"]);
        assert!((sum - number(&thread["wall"])).abs() < 0.001, "{thread:#}");
        assert!(number(&thread["unexplained_share"]).abs() <= 0.03, "{thread:#}");
    }
}

#[test]
fn threads_of_known_behaviour_have_their_time_in_the_right_rows_and_as_much_as_the_kernel_says() {
    if !root() {
        return;
    }
    let place = place();
    let program = compiled(place.path());
    let options = ["--quiet", "--off-cpu", "--sample", "997"];
    let (out, done, ledger) = undisturbed(place.path(), |out| record(out, &options, &[&program, "2"]));
    let said = said(&done.stdout);
    let pid = said["main"].tid;
    adds_up(&ledger, pid);
    let largest = [
        ("computes", "user"),
        ("sleeps", "timer"),
        ("locks", "lock"),
        ("touches", "minor_fault"),
        ("reads", "pipe_or_socket"),
        ("main", "timer"),
    ];
    for (name, expected) in largest {
        let thread = of(&ledger, said[name].tid);
        // On a machine that is busy with other things any of them may wait for a CPU most of its time.
        let first = thread["rows"].as_array().unwrap().iter().find(|row| row["category"] != "runnable").unwrap();
        assert_eq!(first["category"], expected, "{name}: {thread:#}");
        if name != "main" {
            assert_eq!(thread["thread"], name);
        }
    }
    // The kernel's account of the main thread also has what the launcher did in it before the exec.
    for (name, said) in said.iter().filter(|(name, _)| *name != "main") {
        let thread = of(&ledger, said.tid);
        let on_cpu: f64 =
            ["user", "kernel", "on_cpu", "minor_fault", "memory_call"].iter().map(|row| time(thread, row)).sum();
        // What it did after it had said so: print, and leave.
        agrees(&format!("{name}, on the CPU"), on_cpu, said.cpu, 2.0);
        agrees(&format!("{name}, run by schedstat"), on_cpu, said.ran, 2.0);
        let runnable = time(thread, "runnable") + time(thread, "throttled");
        agrees(&format!("{name}, runnable by the counter"), runnable, number(&thread["runnable_by_kernel"]), 2.0);
    }
    // Two that share a CPU wait for it; what samples say of user and kernel has an interval.
    let shares = of(&ledger, said["shares0"].tid);
    assert!(time(shares, "runnable") > 0.3 * number(&shares["wall"]), "{shares:#}");
    assert_eq!(of(&ledger, said["computes"].tid)["split_by"], "samples");
    // On a busy machine it has too few samples outside of its faults.
    let touches = of(&ledger, said["touches"].tid);
    if touches["split_by"] == "samples" {
        let kernel = touches["rows"].as_array().unwrap().iter().find(|row| row["category"] == "kernel").unwrap();
        assert!(kernel["time"]["low"].as_f64().unwrap() <= number(&kernel["time"]), "{kernel}");
    }

    let printed = run(slowpath(["analyze", out.to_str().unwrap()]));
    printed.succeeds();
    // Of the busiest threads, of which each may be any of those that compute.
    assert!(printed.stdout.contains("where its time went") && printed.stdout.contains("user "), "{printed:?}");
}

#[test]
fn threads_that_ran_before_the_recording_and_run_on_are_explained_too() {
    if !root() {
        return;
    }
    let place = place();
    let program = compiled(place.path());
    let mut child = Command::new(&program).args(["100"]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let tasks = || std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    assert!(soon(|| tasks() == 8));
    let record = ["record", "--quiet", "--off-cpu", "--memory-calls", "--duration", "2", "--pid"];
    let recorded = |out: &Path| run(slowpath(record).arg(pid.to_string()).arg("-o").arg(out));
    let (_, _, ledger) = undisturbed(place.path(), recorded);
    child.kill().unwrap();
    child.wait().unwrap();
    adds_up(&ledger, u64::from(pid));
    let named = |name: &str| ledger["threads"].as_array().unwrap().iter().find(|one| one["thread"] == name).unwrap();
    // It never ran while it was recorded.
    let locks = named("locks");
    assert_eq!((locks["rows"].as_array().unwrap().len(), &locks["rows"][0]["category"]), (1, &Value::from("lock")));
    // The kernel's own user and system time tell what the calls of this one cost, and the calls stand apart.
    assert_eq!(ledger["has_memory_calls"], true);
    assert!(time(named("touches"), "memory_call") > 0.0 && time(named("locks"), "memory_call") == 0.0);
}

#[test]
fn a_recording_without_waits_has_no_ledger_and_says_why() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &[], &["/bin/true"]).succeeds();
    let found = analyzed(&out);
    assert!(found["ledger"].is_null());
    let gaps = found["unavailable"].as_array().unwrap();
    let gap = gaps.iter().find(|gap| gap["what"] == "time ledger").unwrap();
    assert!(gap["remedy"].as_str().unwrap().contains("--off-cpu"), "{gap}");
    let printed = run(slowpath(["analyze", out.to_str().unwrap()]));
    assert!(!printed.stdout.contains("ledger"), "{}", printed.stdout);
}
