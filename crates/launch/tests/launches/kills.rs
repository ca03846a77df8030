//! SIGKILL of main, guardian or observer at random moments leaves nothing of a launch.

use std::io::Seek;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use slowpath_launch::{EndPolicy, StopReason};

use super::*;

/// A process that is main of one launch of `spec`.
pub fn probe(spec: &LaunchSpec) -> Command {
    let mut file = tempfile::tempfile().unwrap();
    serde_json::to_writer(&mut file, spec).unwrap();
    file.rewind().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_launch-probe"));
    command.arg("run").stdin(file).process_group(0);
    command
}

fn children(pid: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().map(|child| child.parse().unwrap()).collect()
}

#[derive(Debug, Clone, Copy)]
enum Victim {
    Main,
    Guardian,
    Observer,
    /// Main's whole process group, to which the target belongs too.
    Group,
}

/// Kills the victim, or as much of the chain as there is yet.
fn strike(main: &Child, victim: Victim) {
    if matches!(victim, Victim::Group) {
        let _ = killpg(Pid::from_raw(main.id() as i32), Signal::SIGKILL);
        return;
    }
    let mut pid = main.id() as i32;
    let generations = victim as usize;
    for _ in 0..generations {
        pid = children(pid).first().copied().unwrap_or(pid);
    }
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}

/// Pseudo-random parts of a whole, from 0 to 1, that differ from run to run.
fn parts() -> impl Iterator<Item = f64> {
    let mut state = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {state}");
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    })
}

#[test]
fn a_kill_of_any_process_of_the_launcher_at_any_moment_leaves_nothing() {
    let victims = [Victim::Main, Victim::Guardian, Victim::Observer, Victim::Group];
    // Twice what it takes until the target runs, as the rounds find it: on a busy machine that is many times as long.
    let shortest = Duration::from_millis(40);
    let mut whole = shortest;
    let mut struck_while_running = 0;
    for (round, part) in parts().take(48).enumerate() {
        let delay = whole.mul_f64(part);
        let (mut spec, mark) = shell(
            "sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; (setsid setsid sleep 1000 &) ; sleep 1000",
        );
        // A tracer is one process more that must go, and that must not keep the others.
        if round / 8 % 2 == 1 {
            spec.context.push(slowpath_launch::ContextStep::Traced);
        }
        spec.pid_namespace = round % 2 == 1 && nix::unistd::geteuid().is_root();
        let victim = victims[round / 2 % 4];
        let (name, value) = mark.split_once('=').unwrap();
        let mut main = probe(&spec).env(name, value).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        let is_running = marked(&mark).len() > 4;
        struck_while_running += u32::from(is_running);
        whole = whole.mul_f64(if is_running { 0.8 } else { 1.25 }).max(shortest);
        strike(&main, victim);
        let start = Instant::now();
        while main.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(10), "main hangs after {victim:?} at {delay:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        // Guardian and observer carry the mark too.
        let left = left_after(&mark, Duration::from_secs(5));
        let names = left.iter().map(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default());
        assert!(left.is_empty(), "{victim:?} at {delay:?}, {:?}: {:?}", spec.pid_namespace, names.collect::<Vec<_>>());
    }
    assert!(struck_while_running >= 5, "only {struck_while_running} of 48 kills met a running target");
}

#[test]
fn a_killed_guardian_or_observer_is_an_error_of_the_launch() {
    for pid_namespace in [false, true] {
        if pid_namespace && !is_root() {
            return;
        }
        for victim in [Victim::Guardian, Victim::Observer] {
            let (mut spec, mark) = shell("sleep 1000");
            spec.pid_namespace = pid_namespace;
            let main = probe(&spec).stdout(Stdio::piped()).spawn().unwrap();
            while marked(&mark).is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            strike(&main, victim);
            let output = main.wait_with_output().unwrap();
            let error = String::from_utf8(output.stdout).unwrap();
            assert!(
                error.starts_with("the launcher ended before the launch did"),
                "{victim:?} {pid_namespace}: {error}"
            );
            assert_eq!(marked(&mark), [] as [i32; 0]);
        }
    }
}

#[test]
fn a_killed_target_is_an_outcome_and_not_an_error() {
    let (mut spec, mark) = shell("echo up; kill -KILL $$");
    spec.ready = "file:/no/such/file".parse().unwrap();
    assert_eq!(launch(&spec).unwrap().stop, StopReason::Killed { signal: libc::SIGKILL });
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[test]
fn the_target_of_a_recording_survives_the_death_of_main() {
    let (mut spec, mark) = shell("sleep 1000");
    spec.end = EndPolicy::WaitExit;
    spec.stdio = slowpath_launch::StdioPolicy::Null;
    let mut main = probe(&spec).spawn().unwrap();
    while !marked(&mark)
        .iter()
        .any(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n"))
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (guardian, before) = (children(main.id() as i32)[0], marked(&mark));
    strike(&main, Victim::Main);
    main.wait().unwrap();
    let start = Instant::now();
    while Path::new(&format!("/proc/{guardian}/exe")).exists() && start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let after = marked(&mark);
    for pid in &before {
        let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
    }
    assert_eq!(after, before);
    assert!(!Path::new(&format!("/proc/{guardian}/exe")).exists(), "the launcher is still there");
}
