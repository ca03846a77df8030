//! The `adb` client for one device.

use super::process::{Limits, Ran, run, run_with_input};
use super::{AdbError, check_server, choose, devices};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes of one answer.
const MOST_ANSWER: u64 = 128 << 20;

/// Stands behind an answer: where it is missing, the answer was cut. adb's client itself exits with 0 then.
const END: &str = "slowpath-end:";

/// How adb ends what it says where its file has as many bytes as it may (`EFBIG`, strerror(3)).
const TOO_LARGE: &str = "File too large";

/// A device.
pub struct Adb<'a> {
    program: PathBuf,
    serial: String,
    timeout: Duration,
    version: String,
    is_wanted: &'a dyn Fn() -> bool,
}

/// What a command on the device printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellOutput {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error. Devices before Android 7 have both in one.
    pub stderr: String,
    /// Its exit status.
    pub status: i32,
}

/// A command that did not come to its end, and what of its answer came.
#[derive(Debug)]
pub struct Broken {
    /// Why.
    pub error: AdbError,
    /// What came.
    pub kept: Vec<u8>,
}

impl<'a> Adb<'a> {
    /// Finds the device: with this serial, else the only one. `is_wanted` is asked all the time.
    ///
    /// # Errors
    /// There is no client, no server, or no such device that is ready.
    pub fn connect(
        program: &Path,
        serial: Option<&str>,
        timeout: Duration,
        is_wanted: &'a dyn Fn() -> bool,
    ) -> Result<Self, AdbError> {
        let limits = Limits { timeout, bytes: MOST_ANSWER, file_bytes: None, is_wanted };
        let words = |words: &[&str]| {
            let mut command = Command::new(program);
            command.args(words);
            let ran = run(command, &limits)?;
            whole(&ran, &words.join(" "), timeout)?;
            Ok::<_, AdbError>(String::from_utf8_lossy(&ran.stdout).into_owned())
        };
        let version = words(&["version"])?.lines().next().unwrap_or_default().to_owned();
        check_server(&version, &|name| std::env::var(name).ok())?;
        let serial = choose(&devices(&words(&["devices", "-l"])?), serial)?;
        Ok(Self { program: program.to_owned(), serial, timeout, version, is_wanted })
    }

    /// The device's serial.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// How long a command may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The first line of `adb version`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs a command of the device's shell. `command` is its text: paths in it are quoted by the caller.
    ///
    /// # Errors
    /// It did not come to its end.
    pub fn shell(&self, command: &str) -> Result<ShellOutput, Broken> {
        self.shell_within(command, self.timeout)
    }

    /// The same with another time.
    ///
    /// # Errors
    /// It did not come to its end.
    pub fn shell_within(&self, command: &str, timeout: Duration) -> Result<ShellOutput, Broken> {
        self.shell_with_input(command, timeout, None)
    }

    /// The same with something on the command's standard input.
    ///
    /// # Errors
    /// It did not come to its end.
    pub fn shell_with_input(
        &self,
        command: &str,
        timeout: Duration,
        input: Option<Vec<u8>>,
    ) -> Result<ShellOutput, Broken> {
        let script = format!("{command}; r=$?; echo; echo {END}$r");
        let limits = Limits { timeout, bytes: MOST_ANSWER, file_bytes: None, is_wanted: self.is_wanted };
        let ran = self.run(&["shell", "-T", &script], &limits, input);
        let ran = ran.map_err(|error| Broken { error, kept: Vec::new() })?;
        let broken = |error, kept| Err(Broken { error, kept });
        if ran.is_timed_out {
            return broken(AdbError::TimedOut { command: command.to_owned(), limit: timeout }, ran.stdout);
        }
        match without_end(&ran.stdout) {
            Some((stdout, status)) => Ok(ShellOutput { stdout: stdout.to_owned(), stderr: ran.stderr, status }),
            // The client fails before the command runs, or the answer was cut.
            None if ran.stdout.is_empty() && ran.status != Some(0) && !ran.stderr.trim().is_empty() => {
                broken(AdbError::of_words(&self.serial, &ran.stderr), Vec::new())
            }
            None => broken(AdbError::CutShort(command.to_owned()), ran.stdout),
        }
    }

    /// Copies a file of the device by adb's own protocol for that (sync) to where there is none yet, and returns its size. What the device
    /// sends need not be what it listed, and need not end: after `most` bytes adb can write no more. Where it fails, nothing stays.
    ///
    /// # Errors
    /// It could not be copied, or is larger: [`AdbError::TooLarge`].
    pub fn pull(&self, path: &str, to: &Path, most: u64) -> Result<u64, AdbError> {
        // A device that says that it is a directory would have adb copy what it names in it, under those names. Not over a file.
        new_file(to).map_err(AdbError::Unwritable)?;
        let limits =
            Limits { timeout: self.timeout, bytes: MOST_ANSWER, file_bytes: Some(most), is_wanted: self.is_wanted };
        let words = [OsStr::new("pull"), OsStr::new(path), to.as_os_str()];
        let ran = self.run(&words, &limits, None);
        let pulled = ran.and_then(|ran| whole(&ran, &format!("pull {path} {}", to.display()), self.timeout));
        let found = fs::symlink_metadata(to).ok().filter(fs::Metadata::is_file).map(|found| found.len());
        let error = match (pulled, found) {
            (Ok(()), Some(bytes)) if bytes <= most => return Ok(bytes),
            // The signal ended adb, or it removed what it could not finish, and said why.
            (Err(AdbError::Failed(said)), found) if found == Some(most) || said.ends_with(TOO_LARGE) => {
                AdbError::TooLarge { path: path.to_owned(), most }
            }
            (Err(error), _) => error,
            (Ok(()), _) => AdbError::Failed(format!("it did not make {}", to.display())),
        };
        let _ = fs::remove_file(to);
        Err(error)
    }

    /// Waits, as long as it is wanted.
    ///
    /// # Errors
    /// It is not wanted any more.
    pub fn pause(&self, time: Duration) -> Result<(), AdbError> {
        const STEP: Duration = Duration::from_millis(20);
        let until = Instant::now() + time;
        while let Some(rest) = until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
            if !(self.is_wanted)() {
                return Err(AdbError::Interrupted);
            }
            std::thread::sleep(rest.min(STEP));
        }
        Ok(())
    }

    fn run(&self, words: &[impl AsRef<OsStr>], limits: &Limits<'_>, input: Option<Vec<u8>>) -> Result<Ran, AdbError> {
        let mut command = Command::new(&self.program);
        command.args(["-s", &self.serial]).args(words);
        run_with_input(command, limits, input)
    }
}

/// Makes a file where there is none, for its user alone.
///
/// # Errors
/// There is something, a link for instance, or none can be made.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Whether a command of the client itself came to its end.
fn whole(ran: &Ran, words: &str, timeout: Duration) -> Result<(), AdbError> {
    match ran.status {
        _ if ran.is_timed_out => Err(AdbError::TimedOut { command: format!("adb {words}"), limit: timeout }),
        Some(0) => Ok(()),
        _ => {
            // `adb pull` says on standard output what went wrong.
            let said = if ran.stderr.trim().is_empty() {
                String::from_utf8_lossy(&ran.stdout).into_owned()
            } else {
                ran.stderr.clone()
            };
            Err(AdbError::of_words("", &said))
        }
    }
}

/// The answer without its end, and the exit status in it.
fn without_end(stdout: &[u8]) -> Option<(&[u8], i32)> {
    if stdout.last() != Some(&b'\n') {
        return None;
    }
    let trimmed = stdout.trim_ascii_end();
    let at = trimmed.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let status = std::str::from_utf8(trimmed.get(at..)?).ok()?.strip_prefix(END)?.parse().ok()?;
    // The newline before the end is the script's; an old device makes two bytes of it.
    let answer = &stdout[..at];
    let answer = answer.strip_suffix(b"\n").unwrap_or(answer);
    Some((answer.strip_suffix(b"\r").unwrap_or(answer), status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_has_its_end_and_its_status_whatever_bytes_it_holds() {
        assert_eq!(without_end(b"a\n\nslowpath-end:0\n"), Some((&b"a\n"[..], 0)));
        assert_eq!(without_end(b"\x7fELF\0\xff\nslowpath-end:1\n"), Some((&b"\x7fELF\0\xff"[..], 1)));
        assert_eq!(without_end(b"a\r\n\r\nslowpath-end:127\r\n"), Some((&b"a\r\n"[..], 127)));
        for cut in [&b""[..], b"a\n", b"a\nslowpath-end:", b"a\nslowpath-e", b"a\nslowpath-end:12"] {
            assert_eq!(without_end(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn a_file_is_copied_whole_or_not_at_all_however_its_client_meets_the_limit() {
        let place = tempfile::tempdir().unwrap();
        let pull = |does: &str| {
            let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted_device/endless_client.py");
            let timeout = Duration::from_secs(60);
            let adb = Adb { program, serial: does.to_owned(), timeout, version: String::new(), is_wanted: &|| true };
            let to = place.path().join(does);
            (adb.pull("/data/app/a.vdex", &to, 1000), fs::metadata(to).ok().map(|found| found.len()))
        };
        let (pulled, kept) = pull("ends");
        assert_eq!((pulled.unwrap(), kept), (1000, Some(1000)));
        for does in ["removes", "leaves", "asks"] {
            let (pulled, kept) = pull(does);
            let Err(error @ AdbError::TooLarge { most: 1000, .. }) = pulled else { panic!("{does}: {pulled:?}") };
            assert!(error.to_string().contains("/data/app/a.vdex") && kept.is_none(), "{does}: {error}");
        }
        let (pulled, kept) = pull("fails");
        assert!(matches!(pulled, Err(AdbError::Failed(_))) && kept.is_none(), "{pulled:?}");
        let there = place.path().join("leads");
        std::os::unix::fs::symlink(place.path().join("elsewhere"), &there).unwrap();
        let (pulled, _) = pull("leads");
        assert!(matches!(pulled, Err(AdbError::Unwritable(_))), "{pulled:?}");
        assert!(fs::symlink_metadata(there).is_ok() && !place.path().join("elsewhere").exists());
    }
}
