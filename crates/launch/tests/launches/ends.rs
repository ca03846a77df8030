//! What is left of a tree, and what of a launch, after each end policy.

use slowpath_launch::{EndPolicy, Exit, Hooks, StdioPolicy, StopReason};

use super::*;

const BUSY_TREE: &str = "i=0; while [ $i -lt 500 ]; do sleep 1000 & i=$((i+1)); done; \
    (setsid sh -c '(sleep 1000 &) ; sleep 1000' &) ; (setsid setsid sleep 1000 &) ; echo up; sleep 1000";

#[test]
fn five_hundred_children_and_daemons_are_all_gone_when_the_launch_returns() {
    for pid_namespace in [false, true] {
        if pid_namespace && !is_root() {
            return;
        }
        let (mut spec, mark) = shell(BUSY_TREE);
        spec.ready = "line:up".parse().unwrap();
        spec.pid_namespace = pid_namespace;
        let outcome = launch(&spec).unwrap();
        assert_eq!(outcome.stop, StopReason::Ready);
        assert_eq!(marked(&mark), [] as [i32; 0]);
        // The faults of 500 processes, whether the shell or the observer waited for them.
        assert!(outcome.usage.unwrap().minor_faults > 500 * 30, "{:?}", outcome.usage);
    }
}

#[test]
fn what_a_program_that_ignores_the_ends_of_its_children_does_not_count_is_known_to_be_missing() {
    let lacks = |script: &str, ready: &str| {
        let (mut spec, _) = shell(script);
        spec.ready = ready.parse().unwrap();
        launch(&spec).unwrap().usage.unwrap().lacks_children
    };
    // What is ignored stays so in the program that is executed: at its end, and while it runs below another.
    assert!(lacks("exec env --ignore-signal=CHLD /bin/true", "exit"));
    assert!(lacks("(echo up; exec sleep 1000) | env --ignore-signal=CHLD cat", "line:up"));
    assert!(!lacks("exec env --ignore-signal=USR1 /bin/true", "exit") && !lacks("echo up; sleep 1000", "line:up"));
}

#[test]
fn a_tree_that_never_stops_forking_is_ended() {
    let (mut spec, mark) = shell(
        "f() { while :; do sleep 0.01 & sleep 0.01; done; }; f & f & \
         (setsid sh -c 'while :; do (sleep 0.01 &) ; sleep 0.005; done' &) ; echo up; wait",
    );
    spec.ready = "line:up".parse().unwrap();
    assert_eq!(launch(&spec).unwrap().stop, StopReason::Ready);
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

fn kill(pids: &[i32]) {
    for pid in pids {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), nix::sys::signal::Signal::SIGKILL);
    }
}

#[test]
fn a_target_left_running_lives_on_without_its_launcher() {
    for stdio in [StdioPolicy::Null, StdioPolicy::Capture] {
        let dir = tempfile::tempdir().unwrap();
        let (mut spec, mark) = shell(": > ready; sleep 0.5; echo still writing; : > alive; exec sleep 1000");
        spec.cwd = dir.path().to_owned();
        spec.ready = "file:ready".parse().unwrap();
        spec.end = EndPolicy::LeaveRunning;
        spec.stdio = stdio;
        let output = kills::probe(&spec).output().unwrap();
        let outcome: LaunchOutcome = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((outcome.stop, outcome.exit, outcome.usage), (StopReason::Ready, None, None));
        let start = Instant::now();
        let lives_on = || dir.path().join("alive").exists();
        while !lives_on() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let is_alive = lives_on();
        // While it executes sleep(1) it has no environment, by which it is known, for a moment. Looks are counted, not timed: each waits
        // for as long as a process of another test holds the lock of its memory map.
        let mut left = marked(&mark);
        for _ in 0..100 {
            if !left.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            left = marked(&mark);
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", outcome.pid)).unwrap_or_default();
        kill(&left);
        assert!(is_alive, "{stdio:?}");
        assert_eq!(left, [outcome.pid]);
        let parent: i32 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
        let parents_name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap();
        // Only captured output needs somebody who stays and reads it.
        assert_eq!(parents_name.starts_with("slowpath"), stdio == StdioPolicy::Capture, "{parents_name}");
        assert_eq!(left_after(&mark, Duration::from_secs(1)), [] as [i32; 0]);
        // A zombie, which has no executable, waits for init only.
        let pump = format!("/proc/{parent}/exe");
        let start = Instant::now();
        while stdio == StdioPolicy::Capture && Path::new(&pump).exists() && start.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(stdio != StdioPolicy::Capture || !Path::new(&pump).exists(), "the pump ends with its target");
    }
}

/// Lets the target go on when it was ready.
struct Opening(std::path::PathBuf);

impl Hooks for Opening {
    fn on_ready(&mut self, _: u64) {
        fs::write(&self.0, "").unwrap();
    }
}

#[test]
fn waiting_for_the_exit_reports_both_readiness_and_exit() {
    let dir = tempfile::tempdir().unwrap();
    // It ends after it was seen to be ready, and prints when that was.
    let program = "import os, sys, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\n\
                   print(time.monotonic_ns())\nsys.exit(7)";
    let (mut spec, mark) = spec(&["/usr/bin/python3", "-c", program]);
    spec.cwd = dir.path().to_owned();
    spec.ready = "line:up".parse().unwrap();
    spec.end = EndPolicy::WaitExit;
    let outcome = launcher().launch(&spec, &mut Opening(dir.path().join("go"))).unwrap();
    assert_eq!((outcome.stop, outcome.exit), (StopReason::Ready, Some(Exit::Code(7))));
    let later: u64 = outcome.stdout_tail.unwrap().strip_prefix("up\n").unwrap().trim().parse().unwrap();
    assert!(outcome.released_at < outcome.ready_at.unwrap() && outcome.ready_at.unwrap() < later);
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[test]
fn a_wrapper_may_be_the_calling_program_itself() {
    let (mut spec, _) = spec(&["x"]);
    spec.wrapper = vec!["/proc/self/exe".into(), "y".into()];
    spec.pid_namespace = nix::unistd::geteuid().is_root();
    let outcome = launch(&spec).unwrap();
    assert_eq!(outcome.stop, StopReason::Exited { code: 2 });
    assert!(outcome.stderr_tail.unwrap().starts_with("usage: launch-probe"));
}

#[test]
fn a_launch_of_true_costs_a_few_milliseconds() {
    let (spec, _) = spec(&["/bin/true"]);
    for pid_namespace in [false, true] {
        if pid_namespace && !is_root() {
            return;
        }
        let mut spec = spec.clone();
        spec.pid_namespace = pid_namespace;
        let mut whole = Vec::new();
        let mut ready = Vec::new();
        for _ in 0..31 {
            let start = Instant::now();
            ready.push(launch(&spec).unwrap().require_ready().unwrap());
            whole.push(start.elapsed());
        }
        whole.sort();
        ready.sort();
        println!(
            "/bin/true, pid namespace {pid_namespace}: ready {} us, whole launch {:?} (medians of 31)",
            ready[15] / 1000,
            whole[15]
        );
        assert!(whole[15] < Duration::from_millis(500));
    }
}
