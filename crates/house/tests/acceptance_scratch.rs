//! The directory of an acceptance run goes with the run, whoever ends it.

use slowpath_house::root;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A run that says where its directory is and writes into it. Unless it is alone, it starts a program that starts another one in a session
/// of its own: both have the directory's name among their words.
const RUN: &str = r#"
import signal, subprocess, sys, time
for asks in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    # Whoever runs the tests may ignore them, as nohup does.
    signal.signal(asks, signal.default_int_handler if asks == signal.SIGINT else signal.SIG_DFL)
sys.dont_write_bytecode = True
sys.path.insert(0, "bench/accept")
from scratch import scratch
with scratch("test") as place:
    (place / "file").write_text("x")
    if sys.argv[1] != "alone":
        words = ["/bin/sh", "-c", "setsid sh -c 'echo; sleep 100; :' $0 & sleep 100; :", place]
        subprocess.Popen(words, stdout=subprocess.PIPE).stdout.readline()
    print(place, flush=True)
    time.sleep(100)
"#;

/// Ended with the test, however that ends.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|status| status.is_none()) {
            signal(self, "TERM");
            let _ = self.0.wait();
        }
    }
}

fn started(scratch: &Path, with: &str) -> (Run, PathBuf) {
    let mut run = Command::new("/usr/bin/python3");
    run.args(["-c", RUN, with]).env("SLOWPATH_SCRATCH", scratch).current_dir(root());
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (run, directory) = (Run(run), PathBuf::from(line.trim_end()));
    assert!(directory.join("file").is_file(), "{line:?}");
    (run, directory)
}

fn signal(run: &Run, name: &str) {
    let sent = Command::new("/bin/sh").args(["-c", "kill -s $0 $1", name, &run.0.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Processes with these words in their command line.
fn processes_with(words: &Path) -> Vec<u32> {
    let words = words.to_str().unwrap().as_bytes();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(words.len()).any(|part| part == words)
    };
    pids.filter(has).collect()
}

#[test]
fn a_run_that_is_asked_to_end_takes_its_directory_and_what_it_started_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let (mut run, directory) = started(scratch.path(), "others");
        assert!(processes_with(&directory).len() >= 2);
        signal(&run, name);
        assert_eq!(run.0.wait().unwrap().code(), Some(128 + number), "{name}");
        assert!(!directory.exists(), "{name}: {} is left", directory.display());
        assert_eq!(processes_with(&directory), [] as [u32; 0], "{name}");
    }
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_and_what_others_use_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut running, in_use) = started(scratch.path(), "alone");
    let (mut killed, left) = started(scratch.path(), "alone");
    let foreign = scratch.path().join("slowpath-accept-notes");
    std::fs::create_dir(&foreign).unwrap();
    signal(&killed, "KILL");
    killed.0.wait().unwrap();
    assert!(left.exists());
    let (mut next, _) = started(scratch.path(), "alone");
    assert!(!left.exists() && in_use.exists() && foreign.exists());
    for run in [&mut next, &mut running] {
        signal(run, "TERM");
        run.0.wait().unwrap();
    }
}
