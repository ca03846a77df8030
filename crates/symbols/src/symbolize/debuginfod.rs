//! Debug files from debuginfod, through its own client: nothing here talks to a network.

use super::image::hexadecimal;
use super::opened;
use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The client of debuginfod (`debuginfod-find`, of elfutils). It keeps its own cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debuginfod {
    /// Path of the client.
    pub command: PathBuf,
    /// How long all questions of one call of [`super::symbolize`] may take together. A server that does not answer would cost
    /// a time-out for every file.
    pub patience: Duration,
}

impl Debuginfod {
    /// The client, where the user wants it (`DEBUGINFOD_URLS` is set and not empty) and it is installed (in `PATH`).
    pub fn from_environment(patience: Duration) -> Option<Self> {
        std::env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
        let path = std::env::var_os("PATH")?;
        let command =
            std::env::split_paths(&path).map(|dir| dir.join("debuginfod-find")).find(|path| is_program(path))?;
        Some(Self { command, patience })
    }
}

fn is_program(path: &Path) -> bool {
    path.is_absolute() && path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// A client and the patience that is left.
pub(super) struct Asked<'a> {
    client: &'a Debuginfod,
    left: Duration,
}

impl<'a> Asked<'a> {
    pub fn new(client: &'a Debuginfod) -> Self {
        Self { client, left: client.patience }
    }

    /// The debug file of a build-id, where the client has one in time.
    pub fn ask(&mut self, build_id: &[u8]) -> Option<PathBuf> {
        if self.left.is_zero() {
            return None;
        }
        let begin = Instant::now();
        let answer = find(&self.client.command, build_id, begin + self.left);
        self.left = self.left.saturating_sub(begin.elapsed());
        answer
    }
}

fn find(command: &Path, build_id: &[u8], deadline: Instant) -> Option<PathBuf> {
    // A file takes the answer, not a pipe: what the client may leave running cannot keep a file open for us.
    let mut answer = opened::in_memory(&[]).ok()?;
    let child = Command::new(command)
        .arg("debuginfo")
        .arg(hexadecimal(build_id))
        .stdin(Stdio::null())
        .stdout(Stdio::from(answer.try_clone().ok()?))
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    if !succeeded(child, deadline) {
        return None;
    }
    answer.seek(SeekFrom::Start(0)).ok()?;
    let mut path = Vec::new();
    answer.take(4096).read_to_end(&mut path).ok()?;
    let line = path.split(|byte| *byte == b'\n').next().filter(|line| line.starts_with(b"/"))?;
    Some(PathBuf::from(OsStr::from_bytes(line)))
}

/// Waits for the end of the client, or ends it.
fn succeeded(mut child: Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                // It may have ended by itself in between; either way it is waited for.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(directory: &Path, script: &str) -> Debuginfod {
        let command = directory.join("client");
        // By another process: a child that another test forks meanwhile has what this one has open, and a file that somebody writes is
        // not executed (ETXTBSY).
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 700 \"$0\"";
        assert!(Command::new("sh").args(["-c", write]).arg(&command).arg(script).status().unwrap().success());
        Debuginfod { command, patience: Duration::from_secs(30) }
    }

    #[test]
    fn the_client_is_asked_by_build_id_and_answers_with_a_path() {
        let directory = tempfile::tempdir().unwrap();
        let client = client(directory.path(), "echo \"/cache/$1/$2\"");
        assert_eq!(Asked::new(&client).ask(&[0xab, 1]), Some(PathBuf::from("/cache/debuginfo/ab01")));
    }

    #[test]
    fn a_client_that_fails_or_says_something_else_has_no_file() {
        let directory = tempfile::tempdir().unwrap();
        for script in ["echo /x; exit 1", "echo no such file", "true"] {
            assert_eq!(Asked::new(&client(directory.path(), script)).ask(&[0xab, 1]), None, "{script}");
        }
        let gone = Debuginfod { command: directory.path().join("gone"), patience: Duration::from_secs(1) };
        assert_eq!(Asked::new(&gone).ask(&[0xab, 1]), None);
    }

    #[test]
    fn a_client_that_does_not_answer_is_ended_and_not_asked_again() {
        let directory = tempfile::tempdir().unwrap();
        let count = directory.path().join("count");
        let script = format!("echo asked >> {}; exec sleep 1000", count.display());
        let client = Debuginfod { patience: Duration::from_millis(500), ..client(directory.path(), &script) };
        let mut asked = Asked::new(&client);
        assert_eq!((asked.ask(&[1, 2]), asked.ask(&[3, 4])), (None, None));
        assert_eq!(std::fs::read_to_string(count).unwrap(), "asked\n");
    }
}
