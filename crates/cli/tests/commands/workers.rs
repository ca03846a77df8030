//! The processes of a recording that handle foreign bytes: what they hold, and what their user can do to them.

use crate::running::*;
use crate::traces::processes;
use slowpath_recording::Recording;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A recording of a program of nobody's that waits, with stacks and with memory calls.
struct Recorded {
    running: Option<Running>,
    place: tempfile::TempDir,
}

impl Recorded {
    fn start() -> Self {
        let place = place();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let options = ["record", "--quiet", "--user", "65534", "--sample", "997", "--memory-calls", "-o"];
        let mut command = slowpath(options);
        let program = ["--", "/usr/bin/python3", "-c", "import time; time.sleep(600)"];
        // The place in its command line tells this target from those of other tests.
        let running = start(command.arg(place.path().join("out")).args(program).arg(place.path()));
        let recorded = Self { running: Some(running), place };
        recorded.until("it has begun", |recorded| Recording::open(recorded.out()).is_ok() && recorded.are_confined());
        recorded
    }

    fn out(&self) -> PathBuf {
        self.place.path().join("out")
    }

    fn recorder(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }

    /// Sends ctrl-C to the recorder alone.
    fn interrupt(&mut self) {
        self.running.as_mut().unwrap().signal(libc::SIGINT);
    }

    fn wait(&mut self) -> Done {
        let recorder = self.recorder().unwrap();
        self.until("the recorder has ended", |_| status(recorder, "State:") == "Z");
        // It has the recorder's output open.
        self.end_target();
        self.running.take().unwrap().wait()
    }

    /// The target lives on after its recording.
    fn end_target(&self) {
        let mark = self.place.path().display().to_string();
        for pid in processes() {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains(&mark) && status(pid, "Uid:") == "65534" {
                signal(pid, libc::SIGKILL);
            }
        }
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "not in time: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Children of the recorder that were forked, executed nothing and work on bytes; one that only opens and reads what others
    /// control has a name of its own.
    fn workers(&self) -> Vec<u32> {
        let Some(recorder) = self.recorder() else { return Vec::new() };
        let command = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let children = fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children")).unwrap_or_default();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        let is_reader = |pid: u32| status(pid, "Name:") == "slowpath-reads";
        let is_worker = |pid: &u32| command(*pid) == command(recorder) && !is_reader(*pid);
        children.filter(is_worker).collect()
    }

    /// Whether there are three, each with its filter: one that was just forked, also one that only reads, has neither that nor its name.
    fn are_confined(&self) -> bool {
        let workers = self.workers();
        workers.len() == 3 && workers.iter().all(|pid| is_confined(*pid))
    }

    /// The one that writes the recording: it has its directory open.
    fn writer(&self) -> u32 {
        let out = self.out();
        let is_writer = |pid: &u32| open_files(*pid).iter().any(|file| file.starts_with(out.to_str().unwrap()));
        self.workers().into_iter().find(is_writer).unwrap()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        self.end_target();
    }
}

fn status(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

fn is_confined(pid: u32) -> bool {
    status(pid, "Seccomp:") == "2"
}

fn open_files(pid: u32) -> Vec<String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|one| Some(fs::read_link(one.path()).ok()?.display().to_string())).collect()
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: kill takes integers; the process is this test's own.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

#[test]
fn what_handles_foreign_bytes_of_a_recording_has_no_descriptor_no_mapping_and_no_capability_of_the_recorders() {
    if !root() {
        return;
    }
    let mut recorded = Recorded::start();
    let out = recorded.out().display().to_string();
    for pid in recorded.workers().into_iter().filter(|pid| is_confined(*pid)) {
        for file in open_files(pid) {
            let is_expected = ["socket:", "pipe:", "/dev/null", "/proc/kallsyms", out.as_str(), "/memfd:unwind-table"];
            assert!(is_expected.iter().any(|expected| file.starts_with(expected)), "{pid} has {file}");
        }
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        assert!(!maps.contains("anon_inode:"), "{maps}");
        let no_capability = "0000000000000000";
        for (key, value) in [("Uid:", "65534"), ("CapPrm:", no_capability), ("NoNewPrivs:", "1"), ("Seccomp:", "2")] {
            assert_eq!(status(pid, key), value, "{key}");
        }
    }
    recorded.interrupt();
    recorded.wait().succeeds();
}

#[test]
fn who_makes_unwinding_tables_is_replaced_when_its_user_kills_it_and_the_recording_goes_on() {
    if !root() {
        return;
    }
    let mut recorded = Recorded::start();
    let writer = recorded.writer();
    let parsers: Vec<u32> = recorded.workers().into_iter().filter(|pid| *pid != writer && is_confined(*pid)).collect();
    parsers.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
    recorded.until("others take their place", |recorded| {
        let workers = recorded.workers();
        recorded.are_confined() && parsers.iter().all(|pid| !workers.contains(pid))
    });
    recorded.interrupt();
    recorded.wait().succeeds();
}

#[test]
fn a_writer_that_its_user_stops_once_goes_on_and_one_that_stays_stopped_ends_the_recording_with_an_error() {
    if !root() {
        return;
    }
    let mut recorded = Recorded::start();
    signal(recorded.writer(), libc::SIGSTOP);
    recorded.interrupt();
    recorded.wait().succeeds();
    let mut recorded = Recorded::start();
    let writer = recorded.writer();
    let stopping = std::thread::spawn(move || {
        let began = Instant::now();
        while fs::exists(format!("/proc/{writer}/fd")).unwrap() && status(writer, "State:") != "Z" {
            assert!(began.elapsed() < PATIENCE);
            signal(writer, libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    recorded.wait().fails_with(3, &["it was stopped by signal 19"]);
    stopping.join().unwrap();
}
