//! Processes of a benchmark: forked, ended with their parent, and never left behind.
//!
//! A child dies with the thread that forked it (PR_SET_PDEATHSIG), and the parent ends and reaps all of them when it is
//! done, whatever happened. What they compute reaches the parent through shared memory or pipes that the caller made.

use crate::scheduling::now_ns;
use crate::transport::IpcError;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It left by itself with this code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Killed(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// A process, for who looks for it in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Pid.
    pub pid: u32,
    /// When it was made: CLOCK_MONOTONIC in ns, read before fork(2).
    pub started: u64,
}

/// One process.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    started: u64,
    ending: Option<Ending>,
}

impl Child {
    /// Forks a process that runs `work` and exits with its code. It has a copy of everything the caller has.
    ///
    /// # Errors
    /// The kernel makes no process.
    pub fn start(work: impl FnOnce() -> i32) -> Result<Self, IpcError> {
        let parent = getpid();
        Self::fork(|| {
            // The parent may be gone already, and then no signal would come.
            let bound = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_ok() && getppid() == parent;
            if bound { work() } else { 71 }
        })
    }

    /// The same, but the process outlives its parent: for who cleans up after it.
    pub(crate) fn start_surviving(work: impl FnOnce() -> i32) -> Result<Self, IpcError> {
        Self::fork(work)
    }

    fn fork(work: impl FnOnce() -> i32) -> Result<Self, IpcError> {
        let started = now_ns();
        // SAFETY: the child runs `work` and leaves by _exit. glibc makes its allocator usable after fork also in programs with
        // several threads; other locks of the parent (standard output) are not touched in `work`.
        match unsafe { fork() }.map_err(|errno| IpcError::system("fork", errno.into()))? {
            ForkResult::Parent { child } => Ok(Self { pid: child, started, ending: None }),
            ForkResult::Child => {
                let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(70);
                // SAFETY: ends the process without running what its parent registered.
                unsafe { libc::_exit(code) }
            }
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Its process id, and when it was made.
    pub fn process(&self) -> Process {
        Process { pid: self.pid(), started: self.started }
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<Ending> {
        self.reap(WaitPidFlag::WNOHANG);
        self.ending
    }

    fn reap(&mut self, flags: WaitPidFlag) {
        while self.ending.is_none() {
            self.ending = match waitpid(self.pid, Some(flags)) {
                Ok(WaitStatus::Exited(_, code)) => Some(Ending::Exited(code)),
                Ok(WaitStatus::Signaled(_, signal, _)) => Some(Ending::Killed(signal as i32)),
                Ok(WaitStatus::StillAlive) => return,
                Err(nix::errno::Errno::EINTR) | Ok(_) => None,
                // Someone else reaped it: it is gone.
                Err(_) => Some(Ending::Exited(72)),
            };
        }
    }

    /// Waits until it ended by itself.
    pub(crate) fn wait(&mut self) -> Option<Ending> {
        self.reap(WaitPidFlag::empty());
        self.ending
    }

    /// Ends it, and waits until it is gone.
    pub fn end(&mut self) {
        if self.ended().is_none() {
            // Not reaped yet, so the id is still this process's.
            let _ = kill(self.pid, Signal::SIGKILL);
            self.reap(WaitPidFlag::empty());
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_dropped_is_gone_and_reaped() {
        let child = Child::start(|| {
            loop {
                std::thread::park()
            }
        })
        .unwrap();
        let path = format!("/proc/{}", child.pid());
        assert!(std::path::Path::new(&path).exists());
        drop(child);
        assert!(!std::path::Path::new(&path).exists());
    }

    #[test]
    fn a_panic_in_a_child_ends_only_the_child() {
        let mut child = Child::start(|| std::panic::resume_unwind(Box::new(()))).unwrap();
        child.reap(WaitPidFlag::empty());
        assert_eq!(child.ended(), Some(Ending::Exited(70)));
    }
}
