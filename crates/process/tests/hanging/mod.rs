//! A process whose own file system does not answer, for tests of whoever looks at it: one of the programs beside this file, in a mount
//! namespace of its own. It ends with this value, and with the thread that started it.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, geteuid};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// It runs, and has said what it has to say.
pub struct Hanging {
    process: Child,
    /// Its first line.
    pub line: String,
    _place: TempDir,
}

impl Hanging {
    /// Starts a program with the directory for its file system and these words; `None` with a line that says so where that cannot be.
    pub fn start(program: &str, words: &[&str]) -> Option<Self> {
        if !geteuid().is_root() || std::fs::File::open("/dev/fuse").is_err() {
            println!("skipped: FUSE needs root and /dev/fuse");
            return None;
        }
        let place = TempDir::new().unwrap();
        let process = Command::new("/usr/bin/unshare")
            .args(["-m", "/usr/bin/python3", "-S"])
            .arg(format!("{}/../process/tests/hanging/{program}", env!("CARGO_MANIFEST_DIR")))
            .arg(place.path())
            .args(words)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut hanging = Self { process, line: String::new(), _place: place };
        let out = hanging.process.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut hanging.line).unwrap();
        Some(hanging)
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.process.id().cast_signed()), Signal::SIGKILL);
        let _ = self.process.wait();
    }
}
