//! A process of the launcher that follows the target with ptrace(2) and stops each system call of it and of its descendants, as
//! `strace -f` does, and looks at nothing. It ends with the last process that it follows.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{getppid, pipe2, read, write};

use crate::{ptrace, sys};

/// The target's ends of the conversation with its tracer.
pub(super) struct Tracer {
    pub(super) pid: i32,
    /// The target's pid goes in here.
    ask: OwnedFd,
    /// An error number comes out here; 0: it is followed.
    answer: OwnedFd,
}

/// Starts a tracer, a child of the calling process. `tied`: it ends with its parent, and what it follows ends with it.
pub(super) fn start(null: &OwnedFd, tied: bool) -> io::Result<Tracer> {
    let ((asked, ask), (answer, answered)) = (pipe2(OFlag::O_CLOEXEC)?, pipe2(OFlag::O_CLOEXEC)?);
    let parent = nix::unistd::getpid();
    // SAFETY: the observer has one thread.
    match unsafe { sys::fork() }? {
        Some(pid) => Ok(Tracer { pid, ask, answer }),
        None => {
            sys::set_name(c"slowpath-trace");
            if tied && (sys::die_with_parent().is_err() || getppid() != parent) {
                sys::exit_now(1);
            }
            // Whoever waits for the end of the caller's output must not wait for this process.
            let quiet = nix::unistd::dup2_stdin(null)
                .and_then(|()| nix::unistd::dup2_stdout(null))
                .and_then(|()| nix::unistd::dup2_stderr(null));
            sys::close_all_but(&mut [asked.as_raw_fd(), answered.as_raw_fd()]);
            let mut pid = [0; 4];
            if quiet.is_ok() && matches!(read(&asked, &mut pid), Ok(4)) {
                let pid = i32::from_ne_bytes(pid);
                let followed = ptrace::seize(pid, tied);
                let errno = followed.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
                let _ = write(&answered, &errno.to_ne_bytes());
                drop((asked, answered));
                if followed.is_ok() {
                    follow();
                }
            }
            sys::exit_now(0)
        }
    }
}

impl Tracer {
    /// What the target needs of it.
    pub(super) fn descriptors(&self) -> [RawFd; 2] {
        [self.ask.as_raw_fd(), self.answer.as_raw_fd()]
    }

    /// Called by the target: from its return on each of its system calls is stopped.
    pub(super) fn attach(&self) -> io::Result<()> {
        ptrace::allow(self.pid);
        write(&self.ask, &nix::unistd::getpid().as_raw().to_ne_bytes())?;
        let mut answer = [0; 4];
        loop {
            match read(&self.answer, &mut answer) {
                Ok(4) => break,
                Ok(_) => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Lets everything go on that stops, until nothing is left.
fn follow() {
    loop {
        match ptrace::wait_any() {
            Ok(Some(stopped)) => stopped.go_on(),
            Ok(None) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return,
        }
    }
}
