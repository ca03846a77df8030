//! Two POSIX message queues. Their names exist for the moment between opening and unlinking only.

use super::framed::{Calls, HEADER, pair};
use super::{Pair, Transport, tried};
use rustix::io::{Errno, Result};
use slowpath_tables::OffCpuReason;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "posix-mq",
    title: "POSIX message queue",
    documentation: "Two POSIX message queues (mq_overview(7)), one a direction. Payloads above 8 KiB go as several messages, because \
                    that is the size that everybody may use (fs.mqueue.msgsize_max).",
    waits: OffCpuReason::PipeOrSocket,
    check: || {
        let remedy =
            "a kernel with CONFIG_POSIX_MQUEUE, and room under fs.mqueue.queues_max and RLIMIT_MSGQUEUE (ulimit -q)";
        tried("posix-mq", remedy, || connect(16))
    },
    connect,
};

/// The default of fs.mqueue.msgsize_max (`DFLT_MSGSIZE`, include/linux/ipc_namespace.h).
const MESSAGE: usize = 8192;
/// Messages that a queue holds; the default of fs.mqueue.msg_max is 10.
const DEEP: i64 = 4;

/// A message queue's descriptor is a file descriptor in Linux.
#[derive(Clone, Copy)]
struct Queue {
    /// Bytes of its messages, at most.
    message: usize,
}

impl Calls for Queue {
    /// No receiving end may have less room than the queue's messages could take.
    const SLACK: usize = MESSAGE;

    fn send(self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        // SAFETY: the buffer is alive and as long as is said.
        match unsafe { libc::mq_send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) } {
            0 => Ok(bytes.len()),
            _ => Err(last_error()),
        }
    }

    fn receive(self, fd: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize> {
        let (fd, none) = (fd.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: the buffer is alive and as long as is said; no priority is asked for.
        let received = unsafe { libc::mq_receive(fd, bytes.as_mut_ptr().cast(), bytes.len(), none) };
        usize::try_from(received).map_err(|_| last_error())
    }

    fn at_once(self) -> usize {
        self.message
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn connect(largest: usize) -> io::Result<Pair> {
    // Queues count against RLIMIT_MSGQUEUE with all messages that they could hold.
    let message = (HEADER + largest).min(MESSAGE);
    let (request, reply) = (queue(message)?, queue(message)?);
    let (request_too, reply_too) = (request.try_clone()?, reply.try_clone()?);
    Ok(pair((request, request_too), (reply, reply_too), Queue { message }, largest))
}

fn queue(message: usize) -> io::Result<OwnedFd> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = CString::new(format!("/slowpath-ipc-{}-{number}", std::process::id()))?;
    // SAFETY: all zero is a valid value of this plain structure.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    attributes.mq_maxmsg = DEEP;
    attributes.mq_msgsize = i64::try_from(message).map_err(io::Error::other)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // A queue of this name is of a process that had our id and was killed between the two calls below.
    // SAFETY: the name ends with NUL and is alive.
    unsafe { libc::mq_unlink(name.as_ptr()) };
    // SAFETY: name and attributes are alive; mode and attributes follow because of O_CREAT.
    let raw = unsafe { libc::mq_open(name.as_ptr(), flags, 0o600 as libc::mode_t, &raw mut attributes) };
    if raw < 0 {
        return Err(match io::Error::last_os_error() {
            // The same number for two limits: where another descriptor can be had, it is that of queues.
            error if error.raw_os_error() == Some(libc::EMFILE) && nix::sys::eventfd::EventFd::new().is_ok() => {
                let reason = "the queues of this user are at RLIMIT_MSGQUEUE";
                io::Error::new(io::ErrorKind::QuotaExceeded, reason)
            }
            error => error,
        });
    }
    // SAFETY: the name is alive.
    unsafe { libc::mq_unlink(name.as_ptr()) };
    // SAFETY: the descriptor was just made and is ours alone.
    let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
    Ok(descriptor)
}
