//! The socket over which a browser is driven: who has it, and who has not.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use slowpath_launch::{BoxError, ExecError, Hooks};

use super::*;

/// Answers to one line, and stays.
const ECHO: &str = "import os, time; os.write(4, os.read(3, 100) + b' yourself'); time.sleep(600)";

/// Says something to the target, and ends it when that has answered.
#[derive(Default)]
struct Talk {
    socket: Option<UnixStream>,
    pid: i32,
    answer: String,
    /// Who has the target's end by then, and as which descriptors.
    holders: Vec<(i32, Vec<String>)>,
}

impl Hooks for Talk {
    fn on_devtools(&mut self, socket: OwnedFd) {
        let mut socket = UnixStream::from(socket);
        socket.write_all(b"hello").unwrap();
        socket.set_nonblocking(true).unwrap();
        self.socket = Some(socket);
    }

    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.pid = pid;
        Ok(())
    }

    fn on_tick(&mut self) {
        // The first moment may come before the target has its end.
        let Some(socket) = &mut self.socket else { return };
        let mut bytes = [0; 100];
        match socket.read(&mut bytes) {
            Ok(length) => self.answer.push_str(std::str::from_utf8(&bytes[..length]).unwrap()),
            // One that could not be executed is gone, and had not read what was said to it.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.socket = None,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        if !self.answer.is_empty() && self.holders.is_empty() {
            let end = fs::read_link(format!("/proc/{}/fd/3", self.pid)).unwrap();
            self.holders = holders(&end);
        }
    }

    fn stop_requested(&self) -> bool {
        !self.answer.is_empty()
    }
}

/// All processes that have this file open.
fn holders(file: &Path) -> Vec<(i32, Vec<String>)> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let numbers = |pid: i32| -> Vec<String> {
        let all = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let same = all.filter(|entry| fs::read_link(entry.path()).is_ok_and(|link| link == file));
        let mut numbers: Vec<_> = same.map(|entry| entry.file_name().into_string().unwrap()).collect();
        numbers.sort();
        numbers
    };
    pids.map(|pid| (pid, numbers(pid))).filter(|(_, numbers)| !numbers.is_empty()).collect()
}

#[test]
fn the_target_alone_has_the_socket_for_devtools_and_the_next_one_has_none() {
    if !has("/usr/bin/python3") {
        return;
    }
    let mut users = vec![None];
    users.extend(is_root().then_some(Some("65534")));
    let mut launcher = launcher();
    for user in users {
        let (mut spec, _) = spec(&["/usr/bin/python3", "-ISc", ECHO]);
        if user.is_some() {
            spec.identity = Identity::for_invocation(user, []).unwrap().0;
            spec.cwd = "/".into();
        }
        spec.devtools = true;
        let mut talk = Talk::default();
        launcher.launch(&spec, &mut talk).unwrap();
        assert_eq!(talk.answer, "hello yourself");
        assert_eq!(talk.holders, [(talk.pid, vec!["3".to_owned(), "4".to_owned()])]);
        // With the target its end is gone.
        let mut socket = talk.socket.unwrap();
        socket.set_nonblocking(false).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(socket.read(&mut [0; 10]).unwrap(), 0);
        let (next, _) = shell("ls /proc/$$/fd");
        let outcome = launcher.launch(&next, &mut NoHooks).unwrap();
        let numbers = outcome.stdout_tail.unwrap();
        assert!(numbers.starts_with("0\n1\n") && !numbers.contains("3\n") && !numbers.contains("4\n"), "{numbers}");
    }
}

#[test]
fn with_the_socket_a_command_that_is_missing_fails_as_without() {
    let (mut spec, _) = spec(&["/nonexistent/browser"]);
    spec.devtools = true;
    for follows in [true, false] {
        let ended = match follows {
            true => launcher().launch(&spec, &mut Talk::default()),
            false => launcher().launch(&spec, &mut NoHooks),
        };
        assert!(matches!(ended, Err(LaunchError::Exec(ExecError::NotFound { .. }))), "{ended:?}");
    }
}
