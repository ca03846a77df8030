//! Running a client program: with an end, a limit of what it prints, and nothing left when this process ends.

use super::AdbError;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, killpg, signal};
use nix::unistd::{Pid, getpid, getppid};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How often it is looked whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the end of its output is waited for when it has ended.
const REST: Duration = Duration::from_secs(2);
/// Bytes of standard error that are kept.
const MOST_SAID: u64 = 1 << 20;

/// What a program printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Standard output, as far as the limit.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
    /// Its exit status; `None` where a signal ended it.
    pub status: Option<i32>,
    /// It was killed after its time.
    pub is_timed_out: bool,
}

/// What holds for every command.
pub struct Limits<'a> {
    /// How long it may take.
    pub timeout: Duration,
    /// Bytes of its output.
    pub bytes: u64,
    /// Bytes of each file that it writes; without it, as many as it likes. What is beyond them is an error of its writing, or ends it where it
    /// asked for the signal.
    pub file_bytes: Option<u64>,
    /// Whether it is still wanted.
    pub is_wanted: &'a dyn Fn() -> bool,
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started, or it is not wanted any more.
pub fn run(command: Command, limits: &Limits<'_>) -> Result<Ran, AdbError> {
    run_with_input(command, limits, None)
}

/// The same with something on its standard input, which ends behind it.
///
/// # Errors
/// As [`run`].
pub fn run_with_input(mut command: Command, limits: &Limits<'_>, input: Option<Vec<u8>>) -> Result<Ran, AdbError> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let (parent, file_bytes) = (getpid(), limits.file_bytes);
    let limited = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        if let Some(most) = file_bytes {
            limit_files(most)?;
        }
        if getppid() == parent { Ok(()) } else { Err(io::Error::other("its parent has ended")) }
    };
    // SAFETY: the child runs this thread alone until its exec, and makes a few system calls, which take no lock.
    unsafe { command.pre_exec(limited) };
    let mut child = command.spawn().map_err(AdbError::NoClient)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that does not read its input ends without it, and this thread with the program.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = collected(child.stdout.take(), limits.bytes);
    let stderr = collected(child.stderr.take(), MOST_SAID);
    let began = Instant::now();
    let (status, is_timed_out) = loop {
        match child.try_wait() {
            Ok(Some(status)) => break (status.code(), false),
            Ok(None) if !(limits.is_wanted)() => {
                end(&mut child);
                return Err(AdbError::Interrupted);
            }
            Ok(None) if began.elapsed() >= limits.timeout => {
                end(&mut child);
                break (None, true);
            }
            Ok(None) => std::thread::sleep(PAUSE),
            Err(error) => return Err(AdbError::NoClient(error)),
        }
    };
    let stdout = stdout.recv_timeout(REST).unwrap_or_default();
    let stderr = stderr.recv_timeout(REST).unwrap_or_default();
    Ok(Ran { stdout, stderr: String::from_utf8_lossy(&stderr).into_owned(), status, is_timed_out })
}

/// What this process writes to a file from now on ends there, with an error that it can report.
fn limit_files(most: u64) -> io::Result<()> {
    // SAFETY: ignoring a signal runs no code of ours. It stays ignored over the exec.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }?;
    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE)?;
    let most = most.min(hard);
    Ok(setrlimit(Resource::RLIMIT_FSIZE, most, most)?)
}

/// Ends it, and what it started in its process group.
fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads a stream in a thread of its own, which ends with the stream. What is beyond the limit is read and dropped.
fn collected(stream: Option<impl Read + Send + 'static>, most: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(mut stream) = stream {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.by_ref().take(most).read_to_end(&mut bytes);
            let _ = io::copy(&mut stream, &mut io::sink());
            let _ = sender.send(bytes);
        });
    }
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration, bytes: u64) -> Result<Ran, AdbError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run(command, &Limits { timeout, bytes, file_bytes: None, is_wanted: &|| true })
    }

    #[test]
    fn a_file_ends_at_its_limit_also_where_its_writer_asked_for_the_signal() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let default = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)";
        for (before, status) in [("pass", Some(1)), (default, None)] {
            let script = format!(
                "import sys\n{before}\nopen(sys.argv[1], 'wb', 0).write(bytes(9)) and open(sys.argv[1], 'ab', 0).write(b'x')"
            );
            let mut command = Command::new("/usr/bin/python3");
            command.args(["-c", &script]).arg(&path);
            let limits =
                Limits { timeout: Duration::from_secs(60), bytes: 9, file_bytes: Some(9), is_wanted: &|| true };
            let ran = run(command, &limits).unwrap();
            assert_eq!((ran.status, ran.is_timed_out), (status, false), "{before}: {}", ran.stderr);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 9, "{before}");
        }
    }

    #[test]
    fn a_program_ends_by_itself_or_after_its_time_and_prints_as_much_as_it_may() {
        let ran = shell("echo 12345; echo no >&2; exit 3", Duration::from_secs(60), 3).unwrap();
        assert_eq!((ran.stdout.as_slice(), ran.stderr.as_str(), ran.status), (&b"123"[..], "no\n", Some(3)));
        let ran = shell("echo a; sleep 600 & sleep 600", Duration::from_millis(300), 9).unwrap();
        assert_eq!((ran.stdout.as_slice(), ran.status, ran.is_timed_out), (&b"a\n"[..], None, true));
    }

    #[test]
    fn input_reaches_a_program_and_ends_and_one_that_does_not_read_it_ends_too() {
        let with = |script: &str, bytes: usize| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]);
            let limits =
                Limits { timeout: Duration::from_secs(60), bytes: 1 << 20, file_bytes: None, is_wanted: &|| true };
            run_with_input(command, &limits, Some(vec![b'x'; bytes])).unwrap()
        };
        assert_eq!(with("wc -c", 100_000).stdout.trim_ascii(), b"100000");
        assert_eq!(with("exit 4", 1 << 20).status, Some(4));
    }

    #[test]
    fn what_is_not_wanted_any_more_is_ended_and_what_is_not_there_is_an_error() {
        let mut command = Command::new("/bin/sleep");
        command.arg("600");
        let limits = Limits { timeout: Duration::from_secs(60), bytes: 9, file_bytes: None, is_wanted: &|| false };
        assert!(matches!(run(command, &limits), Err(AdbError::Interrupted)));
        assert!(matches!(run(Command::new("/no/such/adb"), &limits), Err(AdbError::NoClient(_))));
    }
}
