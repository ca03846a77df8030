//! SIGKILL of slowpath at random moments: of a command that launches by itself no process and no kernel object remains, of a
//! recording no kernel object, and the next command removes the directories.
//!
//! `SLOWPATH_KILLS=1000` is the long run; 24 kills otherwise, spread over the commands as they are there.

use crate::running::*;
use crate::traces::{assert_no_kernel_object_left, clean, kill_all_with, owned_by, processes_with};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// xorshift64* (Vigna 2016): moments that differ, and the same ones in every run.
pub struct Moments(u64);

impl Moments {
    /// With a seed, which is not 0.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number from 0 to 1.
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How often to kill a command that gets this many of a hundred kills.
pub fn kills(percent: u32) -> u32 {
    let all = std::env::var("SLOWPATH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(24u32);
    (all * percent).div_ceil(100)
}

/// Kills `make()` at moments spread over the time that it takes; `tree_ends` when its target must end with it.
fn kill_at_random_moments(kills: u32, seed: u64, tree_ends: bool, make: impl Fn(u32) -> Command) {
    let started = Instant::now();
    run(make(0)).succeeds();
    let first = started.elapsed();
    let mut whole = first;
    let mut moments = Moments::new(seed);
    let (mut killed, mut held, mut directories) = (0, 0, 0);
    // One that has ended before is no kill: there is another one for it.
    for number in 1..=4 * kills {
        if killed == kills {
            break;
        }
        let (name, value) = mark();
        let mut running = start(make(number).env(name, &value));
        let pid = running.child.id();
        let moment = whole.mul_f64(moments.next());
        match ended_within(&mut running, moment) {
            // What ran beside the one before made that slower.
            Some(took) => whole = took.max(first / 4),
            None => running.signal(libc::SIGKILL),
        }
        let done = running.wait();
        let is_killed = done.status.code().is_none();
        killed += u32::from(is_killed);
        if !is_killed {
            done.succeeds();
        }
        let context = format!("kill {number} after {moment:?}");
        if tree_ends {
            assert!(soon(|| processes_with(&value).is_empty()), "{context}: {:?} live on", processes_with(&value));
        } else {
            assert!(
                soon(|| !processes_with(&value).iter().any(|pid| is_slowpath(*pid))),
                "{context}: a launcher lives on"
            );
        }
        assert_no_kernel_object_left(&done);
        held += u32::from(!done.programs.is_empty());
        if !owned_by(pid).is_empty() {
            directories += 1;
            clean();
            assert_eq!(owned_by(pid), [] as [PathBuf; 0], "{context}");
        }
    }
    println!(
        "{killed} of {kills} were killed within {whole:?}; {held} held BPF programs, {directories} left directories, all removed"
    );
    assert!(killed * 2 >= kills, "only {killed} of {kills} were killed before they ended");
}

/// How long it took, where it ends by itself within this time.
fn ended_within(running: &mut Running, most: Duration) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < most {
        if running.child.try_wait().unwrap().is_some() {
            return Some(began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(5).min(most.saturating_sub(began.elapsed())));
    }
    None
}

/// Whether the process runs the command under test (as launcher or observer).
fn is_slowpath(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.as_path() == std::path::Path::new(SLOWPATH))
}

const TARGET: &str = "for i in 1 2 3 4 5; do /bin/ls / > {tmp}/$i; done; sleep 0.3; (sleep 1 &); exit 0";

#[test]
fn a_killed_recording_leaves_no_kernel_object_and_its_directories_are_removed() {
    if !root() {
        return;
    }
    let place = place();
    kill_at_random_moments(kills(35), 0x5EED, false, |number| {
        let mut command = slowpath(["record", "-o"]);
        command.arg(place.path().join(number.to_string())).args(["--", "/bin/sh", "-c", TARGET]);
        command
    });
}

#[test]
fn a_killed_lab_run_leaves_no_process_and_no_kernel_object_and_its_directories_are_removed() {
    if !root() {
        return;
    }
    kill_at_random_moments(kills(15), 0xFEED, true, |_| {
        slowpath(["lab", "run", "--iops", "8000", "--", "/bin/sh", "-c", TARGET])
    });
}

#[test]
fn a_killed_cold_comparison_leaves_nothing() {
    if !root() {
        return;
    }
    kill_at_random_moments(kills(20), 0xC01D, true, |_| {
        slowpath(["launch", "--cold", "--blocks", "2", "--quiet", "--", "/bin/sh", "-c", TARGET])
    });
}

#[test]
fn a_killed_cold_diagnosis_leaves_nothing() {
    if !root() {
        return;
    }
    let place = place();
    kill_at_random_moments(kills(10), 0xD1A6, true, |number| {
        let mut command = slowpath(["diagnose", "--cold", "--blocks", "1", "--arms", "quick", "--quiet", "-o"]);
        command.arg(place.path().join(number.to_string())).args(["--", "/bin/sh", "-c", TARGET]);
        command
    });
}

#[test]
fn a_killed_warm_diagnosis_leaves_nothing() {
    if !root() {
        return;
    }
    let place = place();
    kill_at_random_moments(kills(10), 0x3A23, true, |number| {
        let mut command = slowpath(["diagnose", "--warm", "--blocks", "1", "--quiet", "-o"]);
        command.arg(place.path().join(number.to_string())).args(["--", "/bin/sh", "-c", TARGET]);
        command
    });
}

#[test]
fn a_killed_bisection_leaves_nothing() {
    if !root() {
        return;
    }
    kill_at_random_moments(kills(10), 0xB15E, true, |_| {
        let slow = "env MALLOC_PERTURB_=165 nice -n 4";
        let words = ["context", "bisect", "--fast", "", "--slow", slow, "--max-time", "8s", "--quiet", "--"];
        let mut command = slowpath(words);
        command.args(["/bin/sh", "-c", TARGET]);
        command
    });
}

#[test]
fn a_recording_whose_recorder_was_killed_is_read_as_such_and_not_overwritten() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let (name, value) = mark();
    let mut running = start(slowpath(["record", "-o"]).arg(&out).args(["--", "/bin/sleep", "60"]).env(name, &value));
    assert!(soon(|| out.join("manifest.json").exists()));
    running.signal(libc::SIGKILL);
    // The target lives on, and with it the end of its output.
    kill_all_with(&value);
    running.wait();
    let analyzed = run(slowpath(["analyze"]).arg(&out));
    analyzed.succeeds();
    assert!(analyzed.stderr.contains("its recorder was killed"), "{analyzed:?}");
    record(&out, &[], &["/bin/true"]).fails_with(2, &["is not empty"]);
}
