//! The socket over which a browser is driven, in place of a port that every user of the machine could connect to.

use std::fs::File;
use std::io;
use std::os::fd::{OwnedFd, RawFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use rustix::io::fcntl_dupfd_cloexec;

use crate::sys;

/// Where Chromium reads commands, and where it writes answers (`--remote-debugging-pipe`).
const PLACES: [RawFd; 2] = [3, 4];

/// The caller's end and the target's, close-on-exec.
pub(super) fn pair() -> io::Result<(File, OwnedFd)> {
    let (callers, targets) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
    Ok((callers.into(), out_of_the_way(targets)?))
}

/// A descriptor that a target-to-be still needs after [`take`]: moved above [`PLACES`], close-on-exec.
pub(super) fn out_of_the_way(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(descriptor, PLACES[1] + 1)?)
}

/// Called by the target-to-be: its program finds its end where it looks for it.
pub(super) fn take(end: &OwnedFd) -> io::Result<()> {
    PLACES.into_iter().try_for_each(|place| sys::copy_to(end, place))
}
