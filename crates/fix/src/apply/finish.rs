//! A piece of work that must not stay half done: who kills this process does not end it.
//!
//! Owns the child in which it is done, in a session of its own, so that no signal of a terminal or to the process group reaches it. It
//! has all that this process has, and ends with its work. For work of milliseconds: nothing else of slowpath outlives it.

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2, setsid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// First byte of an answer: it is whole.
const DONE: u8 = 0;

/// Why nothing is known of the work.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// No process could be started, and nothing was done.
    #[error("cannot start a process: {0}")]
    Start(#[source] io::Error),
    /// It ended in the middle.
    #[error("the worker process {0}: the change may be half done")]
    Ended(String),
}

/// Does `work` in a child of its own, and waits for its result.
///
/// # Errors
/// No child could be started, or it was killed or crashed.
pub fn finish(work: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, FinishError> {
    let failed = |errno: Errno| FinishError::Start(errno.into());
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
    // SAFETY: the child runs this thread alone. It allocates, which glibc permits after a fork of several threads too. It ends with
    // `_exit` below.
    match unsafe { fork() }.map_err(failed)? {
        ForkResult::Child => {
            drop(reader);
            // Fails only for the leader of a group, which a new child is not.
            let _ = setsid();
            // The message of a panic has been printed. Nobody reads the answer where the parent was killed.
            if let Ok(bytes) = catch_unwind(AssertUnwindSafe(work)) {
                let _ = File::from(writer).write_all(&[&[DONE], bytes.as_slice()].concat());
            }
            // SAFETY: ends the child; no destructor of the parent's frames runs in it.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut answer = Vec::new();
            let read = File::from(reader).read_to_end(&mut answer);
            match (read, answer.split_first(), reaped(child)) {
                (Ok(_), Some((&DONE, bytes)), _) => Ok(bytes.to_vec()),
                (_, _, Ok(WaitStatus::Signaled(_, signal, _))) => {
                    Err(FinishError::Ended(format!("was ended by signal {}", signal as i32)))
                }
                _ => Err(FinishError::Ended("crashed".to_owned())),
            }
        }
    }
}

fn reaped(child: Pid) -> Result<WaitStatus, Errno> {
    loop {
        match waitpid(child, None) {
            Err(Errno::EINTR) => {}
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{Signal, kill, raise};
    use std::fs;
    use std::time::{Duration, Instant};

    #[test]
    fn the_result_comes_back_and_a_crash_and_a_kill_are_reported() {
        assert_eq!(finish(|| b"done".to_vec()).unwrap(), b"done");
        assert!(finish(Vec::new).unwrap().is_empty());
        let large = vec![7; 1 << 20];
        assert_eq!(finish(|| large.clone()).unwrap(), large);
        // Not `panic!`: a test that fails at the moment of the fork holds the lock of the message, for ever in the child.
        let crash = || -> Vec<u8> { std::panic::resume_unwind(Box::new("on purpose")) };
        assert!(matches!(finish(crash), Err(FinishError::Ended(how)) if how == "crashed"));
        let killed = finish(|| {
            let _ = raise(Signal::SIGKILL);
            Vec::new()
        });
        assert!(matches!(killed, Err(FinishError::Ended(how)) if how.ends_with("signal 9")));
    }

    #[test]
    fn work_that_was_begun_is_done_though_its_parent_and_the_group_of_it_are_killed() {
        let place = tempfile::tempdir().unwrap();
        let [begun, go, done] = ["begun", "go", "done"].map(|name| place.path().join(name));
        let soon = |path: &std::path::Path| {
            let began = Instant::now();
            while !path.exists() && began.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(5));
            }
            path.exists()
        };
        // SAFETY: the child of this test does no more than this call, and ends with `_exit` or a signal.
        let parent = match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let _ = setsid();
                let _ = finish(|| {
                    let _ = fs::write(&begun, "");
                    if soon(&go) {
                        let _ = fs::write(&done, "");
                    }
                    Vec::new()
                });
                // SAFETY: ends it.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => child,
        };
        assert!(soon(&begun) && !done.exists());
        kill(Pid::from_raw(-parent.as_raw()), Signal::SIGKILL).unwrap();
        assert!(matches!(waitpid(parent, None), Ok(WaitStatus::Signaled(_, Signal::SIGKILL, _))));
        fs::write(&go, "").unwrap();
        assert!(soon(&done));
    }
}
