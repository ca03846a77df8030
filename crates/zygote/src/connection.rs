//! One connection, and the child that hangs on it.

use crate::message::{Ending, Step, ToClient, encoded};
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use slowpath_process::{Peer, discard_packet, send_packet, status_field, status_of};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

/// A process by a descriptor: signals and waiting go to it and never to another that has its number later.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    descriptor: OwnedFd,
}

impl Process {
    /// That of a child which was not waited for yet.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn of_child(pid: Pid) -> io::Result<Self> {
        // SAFETY: takes integers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just made it for this process.
        Ok(Self { pid, descriptor: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Sends it a signal. One that is gone is no error.
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: takes integers and a null pointer, which means the same as kill(2).
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.descriptor.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }

    /// Whether it has ended; it is not reaped.
    pub(crate) fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::PIDFd(self.descriptor.as_fd()), flags), Ok(WaitStatus::StillAlive) | Err(Errno::EINTR))
    }

    /// How it ended; it is reaped then.
    pub(crate) fn ended(&self) -> Option<Ending> {
        match waitid(Id::PIDFd(self.descriptor.as_fd()), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::Exited(_, code)) => Some(Ending::Exited(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Ending::Killed(signal as i32)),
            // Whoever shares this process waited for any child: it is gone, and how is not known.
            Err(Errno::ECHILD) => Some(Ending::Exited(-1)),
            _ => None,
        }
    }

    /// Filters that the kernel counts on it (`Seccomp_filters` of proc_pid_status(5), Linux 5.10); also of one that has ended and was not
    /// reaped.
    pub(crate) fn filters(&self) -> Option<u32> {
        filters_of(&self.pid.to_string())
    }
}

/// The same of a process by its name in `/proc`.
pub(crate) fn filters_of(name: &str) -> Option<u32> {
    let status = status_of(name).ok()?;
    status_field(&status, "Seccomp_filters")?.parse().ok()
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// How far a child is.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It is being made; the report comes through this pipe.
    Preparing(OwnedFd),
    /// All is done but the filter, which the zygote looks for.
    Filtering,
    /// It works.
    Running,
}

/// A child of a connection.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) progress: Progress,
    /// Before it was forked, or ordered from a spare.
    pub(crate) began: Instant,
    pub(crate) from_spare: bool,
    /// Whether it is to have a filter of its own.
    pub(crate) is_filtered: bool,
}

/// What a report says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Nothing yet.
    Nothing,
    /// All steps before the filter are done.
    Prepared,
    /// A step failed.
    Failed(Step, i32),
    /// The child ended without a word.
    Silent,
}

/// Reads a report without waiting.
pub(crate) fn report(pipe: &OwnedFd) -> Report {
    let mut bytes = [0u8; 5];
    match nix::unistd::read(pipe, &mut bytes) {
        Err(Errno::EAGAIN | Errno::EINTR) => Report::Nothing,
        Ok(5) => {
            let [step, a, b, c, d] = bytes;
            let step = Step::ALL.into_iter().find(|one| *one as u8 + 1 == step);
            step.map_or(Report::Silent, |step| Report::Failed(step, i32::from_le_bytes([a, b, c, d])))
        }
        Ok(1) if bytes[0] == 0 => Report::Prepared,
        _ => Report::Silent,
    }
}

/// A connection. It goes when its socket and its child are gone.
#[derive(Debug)]
pub(crate) struct Connection {
    /// None once the client is gone or has its last answer.
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) peer: Peer,
    /// Until when it has to say what it wants; none once it did.
    pub(crate) until: Option<Instant>,
    pub(crate) child: Option<Running>,
}

impl Connection {
    /// A new one.
    pub(crate) fn new(socket: OwnedFd, peer: Peer, until: Instant) -> Self {
        Self { socket: Some(socket), peer, until: Some(until), child: None }
    }

    /// Says something. A client that does not take it is left.
    pub(crate) fn say(&mut self, message: &ToClient, descriptor: Option<BorrowedFd<'_>>) {
        let Some(socket) = &self.socket else { return };
        let Ok(bytes) = encoded(message) else { return };
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        if send_packet(socket, &bytes, &descriptors).is_err() {
            self.leave();
        }
    }

    /// Throws away the message that was looked at.
    pub(crate) fn discard(&mut self) {
        if self.socket.as_ref().is_some_and(|socket| discard_packet(socket).is_err()) {
            self.leave();
        }
    }

    /// Closes it; its child ends.
    pub(crate) fn leave(&mut self) {
        // An order that no child took: left unread it would be an error for the client, before the answer.
        let _ = self.socket.take().map(discard_packet);
        self.until = None;
        if let Some(child) = &self.child {
            child.process.signal(libc::SIGKILL);
        }
    }

    /// Whether the zygote receives what comes. While a child is made, the child takes its order's descriptors from there.
    pub(crate) fn is_listened_to(&self) -> bool {
        !self.child.as_ref().is_some_and(|child| matches!(child.progress, Progress::Preparing(_)))
    }

    /// Whether nothing of it is left.
    pub(crate) fn is_over(&self) -> bool {
        self.socket.is_none() && self.child.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::OFlag;
    use nix::unistd::pipe2;
    use std::io::Write;

    #[test]
    fn a_report_is_a_step_with_its_errno_or_that_all_are_done() {
        let said = |bytes: &[u8]| {
            let (reader, writer) = pipe2(OFlag::O_NONBLOCK).unwrap();
            let mut writer = std::fs::File::from(writer);
            assert_eq!(report(&reader), Report::Nothing);
            writer.write_all(bytes).unwrap();
            drop(writer);
            report(&reader)
        };
        assert_eq!(said(&[0]), Report::Prepared);
        assert_eq!(said(&[Step::Identity as u8 + 1, 1, 0, 0, 0]), Report::Failed(Step::Identity, 1));
        assert_eq!(said(&[200, 1, 0, 0, 0]), Report::Silent);
        assert_eq!((said(&[]), said(&[7])), (Report::Silent, Report::Silent));
    }

    #[test]
    fn an_ended_process_is_reaped_once_with_how_it_ended() {
        let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let process = Process::of_child(Pid::from_raw(child.id().cast_signed())).unwrap();
        assert_eq!(process.ended(), None);
        process.signal(libc::SIGTERM);
        let ended = loop {
            if let Some(ended) = process.ended() {
                break ended;
            }
            std::thread::yield_now();
        };
        assert_eq!(ended, Ending::Killed(libc::SIGTERM));
        assert_eq!(process.ended(), Some(Ending::Exited(-1)), "it was waited for");
        assert!(child.wait().is_err());
    }
}
