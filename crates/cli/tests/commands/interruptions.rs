//! Ctrl-C, SIGTERM and `--duration`: a clean end that keeps what was recorded.

use crate::running::*;
use crate::traces::{assert_nothing_left, command_name, processes_with};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// `record` of a target that has executed a program, says that it runs, and lives on until there is a file `go` (a minute at most).
fn recorded_sleep(place: &Path, options: &[&str]) -> (Running, String) {
    let script = script(place);
    let mut command = slowpath(["record", "-o"]);
    let (name, value) = mark();
    command.arg(place.join("out")).args(options).args(["--", "/bin/sh", "-c", &script]).env(name, &value);
    let running = start(&mut command);
    assert!(soon(|| place.join("runs").exists()), "the target runs");
    (running, value)
}

fn script(place: &Path) -> String {
    let place = place.display();
    format!(
        "/bin/true; echo > {place}/runs; n=0; while [ ! -e {place}/go ] && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done"
    )
}

#[test]
fn an_interrupt_keeps_what_was_recorded_and_the_target_lives_on() {
    if !root() {
        return;
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let place = place();
        let (mut running, mark) = recorded_sleep(place.path(), &["--json"]);
        let pid = running.child.id();
        running.signal(signal);
        let asked = Instant::now();
        // The target holds the pipes that this test reads, so the end is seen in the process table.
        assert!(soon(|| !processes_with(&mark).contains(&pid)));
        println!("signal {signal}: it ended after {:?}", asked.elapsed());
        let living = processes_with(&mark);
        assert!(
            living.iter().any(|pid| command_name(*pid) == "sh"),
            "the target is the user's and lives on: {living:?}"
        );
        std::fs::write(place.path().join("go"), "").unwrap();
        let done = running.wait();
        done.succeeds();
        assert_eq!(done.json()["manifest"]["stop_reason"], "interrupted");
        let tables = tables(&place.path().join("out"));
        assert!(tables.manifest.ended.is_some());
        assert!(tables.execs.len() >= 2, "the shell and what it started");
        assert!(tables.exits.iter().any(|exit| exit.running));
    }
}

#[test]
fn what_memory_costs_is_measured_after_an_interrupt_too() {
    if !root() {
        return;
    }
    // On a machine that is too busy nothing can be said in time.
    for _ in 0..3 {
        let place = place();
        let (mut running, mark) = recorded_sleep(place.path(), &["--memory-calls"]);
        let pid = running.child.id();
        running.signal(libc::SIGINT);
        // Detaching and measuring take many times as long beside other work.
        assert!(soon(|| !processes_with(&mark).contains(&pid)) || soon(|| !processes_with(&mark).contains(&pid)));
        std::fs::write(place.path().join("go"), "").unwrap();
        running.wait().succeeds();
        let measured = tables(&place.path().join("out")).manifest.memory_cost.map_or(Vec::new(), |cost| cost.blocks);
        let (after, before): (Vec<_>, Vec<_>) = measured.iter().partition(|block| block.after);
        println!("measured {} kinds of blocks before and {} after", before.len(), after.len());
        if !before.is_empty() && !after.is_empty() {
            return;
        }
    }
    panic!("it was never measured before and after");
}

#[test]
fn a_second_interrupt_while_memory_is_measured_ends_at_once_and_keeps_what_was_recorded() {
    if !root() {
        return;
    }
    // It may have measured before that is noticed here.
    for _ in 0..5 {
        let place = place();
        let (mut running, mark) = recorded_sleep(place.path(), &["--memory-calls"]);
        let pid = running.child.id();
        let children = || -> Vec<u32> {
            let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            let pids = listed.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.filter(|pid| command_name(*pid) == "slowpath").collect()
        };
        let before = children();
        if before.is_empty() {
            println!("skipped: this kernel does not list the children of a process");
            return;
        }
        // Seen twice: a process that reads what others control has its own name only after a moment.
        let measures = || children().into_iter().find(|child| !before.contains(child));
        let is_measured = || {
            let first = measures();
            std::thread::sleep(Duration::from_millis(5));
            first.is_some() && measures() == first
        };
        running.signal(libc::SIGINT);
        let asked = Instant::now();
        let is_over = || asked.elapsed() > Duration::from_secs(20);
        while !is_measured() && !is_over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let was_seen = !is_over();
        running.signal(libc::SIGINT);
        assert!(soon(|| !processes_with(&mark).contains(&pid)));
        std::fs::write(place.path().join("go"), "").unwrap();
        let done = running.wait();
        if !was_seen || done.status.success() {
            println!("too late: {done:?}");
            continue;
        }
        assert_eq!(done.status.code(), Some(130), "{done:?}");
        // Whatever it had started, but for the writer, ends with it; that one when it has written what it has.
        assert!(soon(|| processes_with(&mark).is_empty()));
        let tables = tables(&place.path().join("out"));
        assert!(tables.manifest.ended.is_none() && tables.manifest.memory_cost.is_some());
        // The last that is recorded of a target that lives on.
        assert!(tables.exits.iter().any(|exit| exit.running), "{:?}", tables.exits);
        return;
    }
    panic!("it was never seen while it measured");
}

#[test]
fn ctrl_c_at_a_terminal_ends_target_and_recording_and_keeps_what_was_recorded() {
    if !root() {
        return;
    }
    use std::os::unix::process::CommandExt;
    let place = place();
    let mut command = slowpath(["record", "-o"]);
    let script = script(place.path());
    command.arg(place.path().join("out")).args(["--", "/bin/sh", "-c", &script]).process_group(0);
    let running = start(&mut command);
    assert!(soon(|| place.path().join("runs").exists()));
    // A terminal signals the whole foreground process group.
    // SAFETY: kill takes integers; the group is that of the child, which has not been waited for.
    assert_eq!(unsafe { libc::kill(-(running.child.id() as i32), libc::SIGINT) }, 0);
    let done = running.wait();
    done.succeeds();
    let tables = tables(&place.path().join("out"));
    assert_eq!(tables.manifest.stop_reason.as_deref(), Some("interrupted"));
    assert!(!tables.execs.is_empty());
}

#[test]
fn the_duration_ends_the_recording_and_not_the_target() {
    if !root() {
        return;
    }
    let place = place();
    let (running, mark) = recorded_sleep(place.path(), &["--duration", "0.5"]);
    let pid = running.child.id();
    assert!(soon(|| !processes_with(&mark).contains(&pid)));
    let living = processes_with(&mark);
    assert!(living.iter().any(|pid| command_name(*pid) == "sh"), "the target lives on: {living:?}");
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    std::fs::write(place.path().join("go"), "").unwrap();
    running.wait().succeeds();
    let manifest = tables(&place.path().join("out")).manifest;
    assert_eq!(manifest.stop_reason.as_deref(), Some("the duration was over"));
    let (released, ended) = (manifest.launch.unwrap().released.0, manifest.ended.unwrap().0);
    // Before the target was told to end.
    let end_allowed = Duration::from(now).as_nanos() as u64;
    assert!(ended - released >= 500_000_000 && ended < end_allowed, "{} ns", ended - released);
}

#[test]
fn an_interrupted_lab_ends_its_tree_and_leaves_nothing() {
    if !root() {
        return;
    }
    let place = place();
    let runs = place.path().join("runs");
    // The first look ends at once, the launches in the lab do not.
    let script = format!("[ -e {0} ] && exec sleep 100; echo > {0}", runs.display());
    for launch in ["first", "cold"] {
        let (name, value) = mark();
        let script = if launch == "first" { "exec sleep 100" } else { &script };
        let mut command = slowpath(["lab", "run", "--", "/bin/sh", "-c", script]);
        let mut running = start(command.env(name, &value));
        let sleeps = || processes_with(&value).into_iter().any(|pid| command_name(pid) == "sleep");
        assert!(soon(sleeps), "the {launch} launch runs");
        running.signal(libc::SIGINT);
        let asked = Instant::now();
        let done = running.wait();
        done.fails_with(130, &["interrupted"]);
        assert!(asked.elapsed() < Duration::from_secs(20), "{launch}: it ended after {:?}", asked.elapsed());
        println!("{launch}: it ended {:?} after the signal", asked.elapsed());
        assert_eq!(processes_with(&value), [] as [u32; 0]);
        assert_nothing_left(&done);
    }
}

#[test]
fn an_interrupted_diagnosis_keeps_its_recordings_and_leaves_nothing_else() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let mut command: Command = slowpath(["diagnose", "--cold", "--blocks", "1000", "-o"]);
    let mut running = start(command.arg(&out).args(["--", "/bin/ls", "/"]));
    let started = Instant::now();
    while !out.join("prediction.json").exists() && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    running.signal(libc::SIGINT);
    let done = running.wait();
    done.fails_with(130, &["interrupted"]);
    assert!(!tables(&out.join("needed-1")).execs.is_empty());
    assert_nothing_left(&done);
}

#[test]
fn ctrl_c_at_a_terminal_at_any_moment_of_a_lab_run_says_interrupted() {
    if !root() {
        return;
    }
    use std::os::unix::process::CommandExt;
    // While the recorder is loaded, in the first look, while the image is made, in the cold launches.
    for milliseconds in [100, 700, 1300, 1900, 2500] {
        let mut command = slowpath(["lab", "run", "--runs", "1000", "--", "/bin/ls", "/usr"]);
        let running = start(command.process_group(0));
        let group = -(running.child.id() as i32);
        std::thread::sleep(Duration::from_millis(milliseconds));
        // SAFETY: kill takes integers; the group is that of the child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(group, libc::SIGINT) }, 0);
        let done = running.wait();
        // Before its handler is installed the signal ends slowpath as it ends any program.
        assert!(done.status.code() == Some(130) || done.status.code().is_none(), "{milliseconds} ms: {done:?}");
        assert!(done.status.code().is_none() || done.stderr.contains("interrupted"), "{milliseconds} ms: {done:?}");
        assert_nothing_left(&done);
    }
}
