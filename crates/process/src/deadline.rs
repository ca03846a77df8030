//! Reads of what others control, with a deadline: a page of a process may lie in a file of a FUSE server that does not answer, or in
//! memory that nobody serves (userfaultfd(2)), and who reads it waits with it. So a child reads, and is left behind where it hangs.
//!
//! Owns the child: started when it is needed, one for any number of reads, without a descriptor of its parent's but its socket, ended
//! with its parent and killed when an answer is late. A wait for FUSE and for userfaultfd ends by a kill; where one does not (a hard
//! mount of NFS), the child stays until its file system answers, and nobody waits for it. Leaves what is read to its callers.

use crate::socket_message::{receive, send, words_for};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long an answer is waited for. Reads of `/proc` take microseconds; a machine that is that slow has other problems.
pub const LIMIT: Duration = Duration::from_secs(2);

/// Who hangs so often gets less patience for every further read, so that a thousand of such processes cost seconds and not an hour.
const PATIENT_HANGS: u32 = 4;
const IMPATIENT: Duration = Duration::from_millis(20);

/// How long a child that was killed is waited for at the end.
const PARTING: Duration = Duration::from_millis(100);

/// The longest answer.
const LONGEST: usize = 256 << 20;

/// What a read gives: bytes, and a descriptor where one was opened.
pub type DeadlineAnswer = (Vec<u8>, Option<OwnedFd>);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum DeadlineError {
    /// It did not come in time: what was to be read is held back by whoever it belongs to.
    #[error("no answer within {} ms: its owner holds it back (a hanging FUSE file system, for example)", .0.as_millis())]
    Late(Duration),
    /// The read failed.
    #[error("it could not be read")]
    Failed(#[source] io::Error),
    /// The child could not be started, or ended.
    #[error("the process that reads for this one {what}")]
    Helper {
        /// What became of it.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Reads in a child; `work` says what a request means, and runs there only.
pub struct Deadline<F> {
    work: F,
    limit: Duration,
    child: Option<Child>,
    /// Killed, and not seen to have ended.
    left: Vec<Pid>,
    hangs: u32,
}

struct Child {
    pid: Pid,
    socket: OwnedFd,
}

impl<F: FnMut(&[u8]) -> io::Result<DeadlineAnswer>> Deadline<F> {
    /// Nothing is started before the first request.
    pub fn new(limit: Duration, work: F) -> Self {
        Self { work, limit, child: None, left: Vec::new(), hangs: 0 }
    }

    /// Starts the child now, before there are threads or locks that it could find taken.
    ///
    /// # Errors
    /// No process could be started.
    pub fn start(&mut self) -> Result<(), DeadlineError> {
        if self.child.is_none() {
            self.child = Some(self.forked()?);
        }
        Ok(())
    }

    /// Requests that were not answered in time.
    pub fn hangs(&self) -> u32 {
        self.hangs
    }

    /// Has `work` answer, and waits for it no longer than the limit.
    ///
    /// # Errors
    /// No answer came in time, or `work` failed.
    pub fn ask(&mut self, request: &[u8]) -> Result<DeadlineAnswer, DeadlineError> {
        self.reap();
        self.start()?;
        let limit = if self.hangs < PATIENT_HANGS { self.limit } else { IMPATIENT.min(self.limit) };
        let until = Instant::now() + limit;
        let Some(child) = &self.child else { return Err(DeadlineError::Late(limit)) };
        let result = write_all(&child.socket, &framed(0, request), None, Some(until))
            .and_then(|()| read_frame(&child.socket, Some(until)));
        match result {
            Ok((0, bytes, file)) => Ok((bytes, file)),
            Ok((errno, ..)) => Err(DeadlineError::Failed(io::Error::from_raw_os_error(errno))),
            Err(error) => {
                self.leave();
                if error.kind() != io::ErrorKind::TimedOut {
                    return Err(DeadlineError::Helper { what: "ended", source: error });
                }
                self.hangs += 1;
                Err(DeadlineError::Late(limit))
            }
        }
    }

    fn forked(&mut self) -> Result<Child, DeadlineError> {
        let failed = |errno: Errno| DeadlineError::Helper { what: "could not be started", source: errno.into() };
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).map_err(failed)?;
        let parent = getpid();
        // SAFETY: the child works with its own copies, uses what glibc makes usable after a fork (its allocator), and leaves by `_exit`;
        // a lock that another thread held would end in a late answer.
        match unsafe { fork() }.map_err(failed)? {
            ForkResult::Parent { child } => Ok(Child { pid: child, socket: ours }),
            ForkResult::Child => {
                // What `ps` shows: it is this one that hangs where a file system does.
                // SAFETY: a string of ours that ends with a zero byte; the kernel copies at most 16 bytes.
                unsafe { libc::prctl(libc::PR_SET_NAME, c"slowpath-reads".as_ptr()) };
                let served = alone(&theirs, parent).and_then(|socket| self.serve(&socket));
                // SAFETY: ends the child without running the parent's destructors.
                unsafe { libc::_exit(i32::from(served.is_err())) }
            }
        }
    }

    /// The child: answers until its parent is gone.
    fn serve(&mut self, socket: &OwnedFd) -> io::Result<()> {
        loop {
            let (_, request, _) = read_frame(socket, None)?;
            match (self.work)(&request) {
                Ok((bytes, file)) => write_all(socket, &framed(0, &bytes), file.as_ref(), None)?,
                // 0 would be no error.
                Err(error) => write_all(socket, &framed(error.raw_os_error().unwrap_or(libc::EIO), &[]), None, None)?,
            }
        }
    }

    /// Kills the child and goes on without it.
    fn leave(&mut self) {
        if let Some(child) = self.child.take() {
            let _ = kill(child.pid, Signal::SIGKILL);
            self.left.push(child.pid);
        }
        self.reap();
    }

    /// Takes note of children that have ended; waits for none.
    fn reap(&mut self) {
        self.left.retain(|pid| matches!(waitpid(*pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)));
    }
}

impl<F> Drop for Deadline<F> {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            drop(child.socket);
            let _ = kill(child.pid, Signal::SIGKILL);
            self.left.push(child.pid);
        }
        // A kill takes effect at once where it does at all; who does not die is the init process's, when this one ends. The first looks are
        // close together: a launch pays for them.
        let began = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            self.left.retain(|pid| matches!(waitpid(*pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)));
            if self.left.is_empty() || began.elapsed() > PARTING {
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }
}

/// Keeps of the parent's descriptors the socket only: a child that is left behind holds nothing.
fn alone(socket: &OwnedFd, parent: Pid) -> io::Result<OwnedFd> {
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != parent {
        return Err(io::ErrorKind::NotFound.into());
    }
    for end in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGPIPE] {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { signal(end, SigHandler::SigIgn) }?;
    }
    // Above what close_range leaves, and then back to the first place: whichever of them the socket has.
    // SAFETY: fcntl, dup3 and close_range take integers; the descriptors that they close are copies that nobody uses in this process.
    unsafe {
        let high = libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 16);
        let placed = if high < 0 { -1 } else { libc::dup3(high, 3, libc::O_CLOEXEC) };
        if placed != 3 || libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(3))
    }
}

/// A message: an error number or 0, the length, the bytes.
fn framed(errno: i32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&errno.to_ne_bytes()[..], &length.to_ne_bytes(), bytes].concat()
}

/// Waits until a socket is ready, or `until`.
fn wait(socket: &OwnedFd, flags: PollFlags, until: Option<Instant>) -> io::Result<()> {
    loop {
        let timeout = match until {
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        match poll(&mut [PollFd::new(socket.as_fd(), flags)], timeout) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn write_all(socket: &OwnedFd, mut bytes: &[u8], file: Option<&OwnedFd>, until: Option<Instant>) -> io::Result<()> {
    if bytes.len() > LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // With the first bytes, and no more with the others.
    let mut descriptors: Vec<BorrowedFd<'_>> = file.map(AsFd::as_fd).into_iter().collect();
    while !bytes.is_empty() {
        wait(socket, PollFlags::POLLOUT, until)?;
        match send(socket.as_fd(), bytes, &descriptors, libc::MSG_DONTWAIT) {
            Ok(sent) => {
                bytes = &bytes[sent..];
                descriptors.clear();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_exact(
    socket: &OwnedFd,
    bytes: &mut [u8],
    file: &mut Option<OwnedFd>,
    until: Option<Instant>,
) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        wait(socket, PollFlags::POLLIN, until)?;
        let arrived = match receive(socket.as_fd(), &mut bytes[filled..], &mut [0; words_for(1)], libc::MSG_DONTWAIT) {
            Ok(arrived) => arrived,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        if let Some(descriptor) = arrived.descriptors.into_iter().next_back() {
            *file = Some(descriptor);
        }
        if arrived.length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += arrived.length;
    }
    Ok(())
}

fn read_frame(socket: &OwnedFd, until: Option<Instant>) -> io::Result<(i32, Vec<u8>, Option<OwnedFd>)> {
    let (mut head, mut file) = ([0u8; 8], None);
    read_exact(socket, &mut head, &mut file, until)?;
    let ([errno, length], []) = head.as_chunks::<4>() else { return Err(io::ErrorKind::InvalidData.into()) };
    let length = u32::from_ne_bytes(*length) as usize;
    if length > LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; length];
    read_exact(socket, &mut bytes, &mut file, until)?;
    Ok((i32::from_ne_bytes(*errno), bytes, file))
}

#[cfg(test)]
mod tests;
