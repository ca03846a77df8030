//! `slowpath ipc` when somebody ends it or one of its processes: what is printed is true, and nothing is left.

use crate::ipc::parsed;
use crate::running::*;
use crate::traces::{assert_nothing_left, processes_with};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Children of a process, grandchildren not.
pub fn children_of(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn a_parent_that_is_killed_leaves_no_process() {
    let words = ["ipc", "latency", "-i", "1000000", "--rate", "100", "--transport", "futex-shm", "--load", "1"];
    let mut parent = slowpath(words).stdout(std::process::Stdio::null()).spawn().unwrap();
    // A client, a server and the load.
    let children = loop {
        let children = children_of(parent.id());
        if children.len() == 3 {
            break children;
        }
        assert!(parent.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    };
    parent.kill().unwrap();
    parent.wait().unwrap();
    let lives = |pid: &u32| Path::new(&format!("/proc/{pid}/exe")).exists();
    for _ in 0..600 {
        if !children.iter().any(lives) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("still there: {children:?}");
}

/// How often a process gave up its CPU by itself: each transaction of a client does, at its sleep or at the wait for the reply.
fn waits_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// How many calls of write(2) and the like a process made: the parent of `throughput` and `compare` makes one for each burst.
fn writes_of(pid: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).expect("a kernel with CONFIG_TASK_IO_ACCOUNTING");
    io.lines().find_map(|line| line.strip_prefix("syscw: ")?.parse().ok()).unwrap_or(0)
}

/// The client of the one pair of `latency`, which is forked last, did twenty transactions of each caller, of which a median has an
/// interval: the main thread waits up to four times in an iteration (for the thread of the real-time caller, for the moment, for the
/// reply).
fn client_measures(children: usize) -> impl Fn(u32) -> bool {
    move |pid| {
        let there = children_of(pid);
        there.len() >= children && there.last().is_some_and(|client| waits_of(*client) > 100)
    }
}

/// Bursts were run: more than it takes to find out how long one is (ten for a benchmark, four for two transports), and six blocks of two.
fn bursts_are_run(children: usize) -> impl Fn(u32) -> bool {
    move |pid| children_of(pid).len() >= children && writes_of(pid) > 40
}

#[test]
fn a_client_or_server_that_is_killed_ends_its_pair_and_what_was_measured_is_valid_json() {
    for victim in [0, 1] {
        let words = ["ipc", "latency", "-i", "1000000", "--rate", "200", "--transport", "futex-shm", "--json"];
        let running = start(slowpath(words));
        let pid = running.child.id();
        assert!(soon(|| client_measures(2)(pid)), "it did not begin: {:?}", running.wait());
        let killed = Command::new("kill").args(["-9", &children_of(pid)[victim].to_string()]).status().unwrap();
        assert!(killed.success());
        let done = running.wait();
        let result = parsed(&done.stdout);
        assert_eq!(result["complete"], false);
        assert!(result["P0"]["ended"].as_str().unwrap().contains("signal 9"), "{result}");
        assert_eq!(done.code(), 1);
    }
}

/// Runs a command until `ready` says so of its pid, then sends the signal to its process group, as a terminal does for ctrl-C.
fn interrupted(words: &[&str], ready: impl Fn(u32) -> bool) -> Done {
    use std::os::unix::process::CommandExt;
    let (name, value) = mark();
    let running = start(slowpath(words).env(name, &value).process_group(0));
    let pid = running.child.id();
    assert!(soon(|| ready(pid)), "{words:?} did not begin");
    let asked = Instant::now();
    nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid.cast_signed()), nix::sys::signal::SIGINT).unwrap();
    let done = running.wait();
    println!("{words:?}: ended after {:?}", asked.elapsed());
    // Long after any patience of its own (five seconds for an instance in use), long before what was asked for is done.
    assert!(asked.elapsed() < Duration::from_secs(30), "{words:?} took {:?}", asked.elapsed());
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(done.stderr.contains("interrupted"), "{done:?}");
    assert!(soon(|| processes_with(&value).is_empty()), "left: {:?}", processes_with(&value));
    assert_nothing_left(&done);
    done
}

#[test]
fn ctrl_c_prints_the_transactions_that_were_measured() {
    let words = ["ipc", "latency", "-i", "1000000", "--rate", "200", "--json"];
    let result = interrupted(&words, client_measures(2)).json();
    assert_eq!((result["complete"].as_bool(), result["inheritance"].as_str()), (Some(false), Some("NOT_TESTABLE")));
    assert_eq!(result["P0"]["ended"], "interrupted");
    let (counted, median) = (&result["P0"]["normal"]["transactions"], &result["P0"]["normal"]["percentiles"]["50"]);
    assert!(counted.as_u64().is_some_and(|number| (20..1_000_000).contains(&number)), "{counted}");
    assert!(median["low"].as_f64().unwrap() <= median["value"].as_f64().unwrap(), "{median}");
    let text = interrupted(&["ipc", "latency", "-i", "1000000", "--rate", "200"], client_measures(2)).stdout;
    assert!(text.contains("ended early: interrupted") && text.contains("p50 "), "{text}");
}

#[test]
fn ctrl_c_before_there_is_enough_prints_no_figures() {
    let begun = |pid| children_of(pid).len() >= 2;
    // A quarter of an hour between two transactions.
    let done = interrupted(&["ipc", "latency", "--rate", "0.001"], begun);
    assert!(done.stdout.is_empty() && done.stderr.contains("too little was measured"), "{done:?}");
    let words = ["ipc", "throughput", "--transport", "pipe", "--benchmark_min_time", "600", "--json"];
    let done = interrupted(&words, begun);
    assert_eq!(done.json()["error"]["kind"], "interrupted");
}

#[test]
fn ctrl_c_prints_the_runs_calls_and_blocks_that_were_done() {
    let words = ["ipc", "throughput", "--transport", "pipe", "--size", "4", "--benchmark_min_time", "0.1"];
    let words = [&words[..], &["--benchmark_repetitions", "1000", "--json"]].concat();
    let report = parsed(&interrupted(&words, bursts_are_run(2)).stdout);
    let runs = report["benchmarks"].as_array().unwrap().iter().filter(|one| one["run_type"] == "iteration").count();
    assert!((1..1000).contains(&runs), "{runs}");
    assert_eq!(report["context"]["complete"], false);
    let words = ["ipc", "latency", "-w", "2", "-i", "1000000", "-s", "65536", "--json"];
    // Both workers call each other in their main threads.
    let call = |pid| children_of(pid).iter().filter(|worker| waits_of(**worker) > 40).count() == 2;
    let pool = interrupted(&words, call).json();
    assert!(pool["calls"].as_u64().is_some_and(|calls| calls > 5 && calls < 2_000_000), "{}", pool["calls"]);
    assert_eq!(pool["ended"][0], "interrupted");
    let words = ["ipc", "compare", "--transports", "pipe,unix-stream", "--blocks", "10000", "--json"];
    let compared = interrupted(&words, bursts_are_run(4)).json();
    assert_eq!(compared["complete"], false);
    let blocks = compared["blocks"].as_u64().unwrap();
    assert!((6..10_000).contains(&blocks), "{blocks}");
    assert_eq!(compared["comparisons"][0]["pairs"].as_u64(), Some(blocks));
}

/// Names of the trace instances that a process owns, from a tracefs that nobody else sees; `None` where there is none.
pub fn instances(owner: u32) -> Option<Vec<String>> {
    let list = "{ mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; } && \
                ls /sys/kernel/tracing/instances";
    let listed = in_private_mounts(list).output().unwrap();
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    // slowpath-ipc-<pid namespace>-<pid>-<start>-<number>
    let namespace = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/ns/pid").unwrap());
    let own = format!("slowpath-ipc-{namespace}-{owner}-");
    listed.status.success().then(|| names.lines().filter(|name| name.starts_with(&own)).map(str::to_owned).collect())
}

fn has_instance(owner: u32) -> bool {
    instances(owner).is_some_and(|names| !names.is_empty())
}

fn traces() -> bool {
    let can = root() && instances(0).is_some();
    if !can {
        println!("skipped: no tracefs");
    }
    can
}

const TRACED: [&str; 8] = ["ipc", "latency", "-i", "1000000", "--rate", "200", "-deadline_us", "60000000"];

#[test]
fn ctrl_c_takes_the_trace_instance_with_it() {
    if !traces() {
        return;
    }
    let words = [&TRACED[..], &["-trace", "--json"]].concat();
    // The process that removes the instance, a client and a server.
    let done = interrupted(&words, |pid| has_instance(pid) && client_measures(3)(pid));
    let result = done.json();
    assert_eq!((result["complete"].as_bool(), result["trace"].is_null()), (Some(false), true), "{result}");
    assert!(!has_instance(done.pid));
}

#[test]
fn an_instance_whose_owner_and_keeper_were_killed_is_found_and_removed_by_doctor() {
    if !traces() {
        return;
    }
    let words = [&TRACED[..], &["-trace"]].concat();
    let running = start(slowpath(&words));
    let pid = running.child.id();
    assert!(soon(|| has_instance(pid) && children_of(pid).len() >= 3));
    // None of them can remove it any more when the first one is gone.
    let all: Vec<u32> = children_of(pid).into_iter().chain([pid]).collect();
    for signal in ["-STOP", "-KILL"] {
        let pids = all.iter().map(u32::to_string);
        assert!(Command::new("kill").arg(signal).args(pids).status().unwrap().success());
    }
    assert!(!running.wait().status.success());
    let left = instances(pid).unwrap();
    let [name] = left.as_slice() else { panic!("{left:?}") };
    let shown = format!("/sys/kernel/tracing/instances/{name}");
    let lists = |list: &serde_json::Value| list.as_array().unwrap().iter().any(|path| *path == shown.as_str());
    // Another test may clean meanwhile: then it is gone.
    let found = run(slowpath(["doctor", "--json"])).json();
    assert!(lists(&found["leftovers"]) || !has_instance(pid), "{found}");
    let there = has_instance(pid);
    let cleaned = run(slowpath(["doctor", "--clean", "--json"])).json();
    assert!(lists(&cleaned["removed"]) || !there, "{cleaned}");
    assert!(!has_instance(pid), "{shown} is still there");
}
