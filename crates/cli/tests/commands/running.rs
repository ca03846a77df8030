//! Runs the command under test with a limit on its time, and reads what it said.

use crate::traces::{loop_devices_of, programs_of};
use serde_json::Value;
use slowpath_recording::{Recording, Tables};
use std::borrow::BorrowMut;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The command under test.
pub const SLOWPATH: &str = env!("CARGO_BIN_EXE_slowpath");
/// A command that hangs fails its test after this.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked what a command holds: a look at a hundred programs takes milliseconds, and a recording holds them for longer.
const LOOKS: Duration = Duration::from_millis(50);

/// What a command did.
#[derive(Debug)]
pub struct Done {
    pub pid: u32,
    /// BPF programs that the command held while it ran.
    pub programs: BTreeSet<u64>,
    /// Loop devices that it held, each with its image.
    pub devices: BTreeSet<(PathBuf, String)>,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// The exit code; a death by signal fails the test.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("died of signal {:?}: {self:?}", self.status.signal()))
    }

    /// Fails unless it exited with `code` and said `words` on standard error.
    #[track_caller]
    pub fn fails_with(&self, code: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in the message: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// Fails unless it exited with 0.
    #[track_caller]
    pub fn succeeds(&self) {
        assert_eq!(self.status.code(), Some(0), "{self:?}");
    }

    /// The one JSON object on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        let value: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not one JSON value: {error}\n{self:?}"));
        assert!(
            value.is_object() && value["schema"].as_str().is_some_and(|name| name.starts_with("slowpath-")),
            "{value}"
        );
        value
    }
}

/// A running command whose output is being collected.
pub struct Running {
    pub child: Child,
    programs: BTreeSet<u64>,
    devices: BTreeSet<(PathBuf, String)>,
    stdout: std::thread::JoinHandle<Vec<u8>>,
    stderr: std::thread::JoinHandle<Vec<u8>>,
}

impl Running {
    /// Waits for its end; kills it and fails when that takes too long.
    pub fn wait(self) -> Done {
        self.wait_within(PATIENCE)
    }

    /// The same for a command that may take longer than others.
    pub fn wait_within(mut self, patience: Duration) -> Done {
        let start = Instant::now();
        let pid = self.child.id();
        let mut programs = std::mem::take(&mut self.programs);
        let mut devices = std::mem::take(&mut self.devices);
        let mut looked: Option<Instant> = None;
        let status = loop {
            if looked.is_none_or(|at| at.elapsed() >= LOOKS) {
                programs.extend(programs_of(pid));
                devices.extend(loop_devices_of(pid));
                looked = Some(Instant::now());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > patience {
                self.child.kill().unwrap();
                // What it said of its progress; who still holds the pipe could hold this up, too.
                let until = Instant::now() + Duration::from_secs(2);
                while !self.stderr.is_finished() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(10));
                }
                let said = if self.stderr.is_finished() { self.stderr.join().unwrap() } else { Vec::new() };
                panic!("it did not end in {patience:?}; it said: {}", String::from_utf8_lossy(&said));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let text = |thread: std::thread::JoinHandle<Vec<u8>>| {
            String::from_utf8(thread.join().unwrap()).expect("output is UTF-8")
        };
        Done { pid, programs, devices, status, stdout: text(self.stdout), stderr: text(self.stderr) }
    }

    /// Sends a signal to the command alone. What it holds is looked at first, while it stands still.
    pub fn signal(&mut self, signal: i32) {
        self.send(libc::SIGSTOP);
        self.programs.extend(programs_of(self.child.id()));
        self.devices.extend(loop_devices_of(self.child.id()));
        self.send(signal);
        self.send(libc::SIGCONT);
    }

    fn send(&self, signal: i32) {
        // SAFETY: kill takes integers; the child has not been waited for, so its pid is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

fn collect(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Starts `command` with collected output and no input.
pub fn start(mut command: impl BorrowMut<Command>) -> Running {
    start_with_input(command.borrow_mut().stdin(Stdio::null()))
}

/// Starts `command` with collected output and the standard input that it has.
pub fn start_with_input(command: &mut Command) -> Running {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    Running {
        child,
        programs: BTreeSet::new(),
        devices: BTreeSet::new(),
        stdout: collect(stdout),
        stderr: collect(stderr),
    }
}

/// Runs `command` to its end.
pub fn run(command: impl BorrowMut<Command>) -> Done {
    start(command).wait()
}

/// The command under test with `arguments`.
pub fn slowpath<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(SLOWPATH);
    command.args(arguments).current_dir("/");
    command
}

/// `record -o directory <options> -- <target>`, run to its end.
pub fn record(directory: &Path, options: &[&str], target: &[&str]) -> Done {
    let mut command = slowpath(["record", "-o"]);
    run(command.arg(directory).args(options).arg("--").args(target))
}

/// A command that runs `script` in a private mount namespace; `$SLOWPATH` is the command under test.
pub fn in_private_mounts(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-ec", script])
        .env("SLOWPATH", SLOWPATH)
        .current_dir("/");
    command
}

/// The tables of a recording, all of it whole.
pub fn tables(directory: &Path) -> Tables {
    Recording::open(directory).unwrap().tables().unwrap()
}

/// A name and value for the environment of one command and of all that it starts.
pub fn mark() -> (&'static str, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    ("SLOWPATH_TEST_MARK", format!("{}-{}-", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// A copy of a program, made by another process: one that another test forks meanwhile would have a file of ours open for writing, and the
/// kernel executes no such file (ETXTBSY).
pub fn copy_program(from: &str, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// A script that can be executed, written by another process as in [`copy_program`].
pub fn write_script(path: &Path, text: &str) {
    let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
    assert!(Command::new("sh").args(["-c", write]).arg(path).arg(text).status().unwrap().success());
}

/// A directory that every user can enter, outside of home directories.
pub fn place() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Whether this is root; says that the test is skipped when not.
pub fn root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("skipped: recording needs root");
    }
    root
}

/// Whether a process has come to sleep in sleep(1). Before, its loader has not mapped everything, also where it waits for a page.
pub fn sleeps(pid: u32) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let call = read("syscall").split(' ').next().and_then(|number| number.parse().ok());
    read("comm") == "sleep\n" && call == Some(libc::SYS_clock_nanosleep)
}

/// Waits up to half a minute for `condition`.
pub fn soon(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    condition()
}
