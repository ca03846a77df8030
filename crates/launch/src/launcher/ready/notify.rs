//! `notify`: the datagram socket of `sd_notify(3)`.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials, bind, getsockname,
    recvmsg, setsockopt, socket, sockopt,
};

/// Messages that one look takes: everybody on the machine can send some, and the observer has more to look after.
const MOST_A_LOOK: usize = 64;

pub(crate) struct NotifySocket {
    socket: OwnedFd,
    name: OsString,
    sender: Option<u32>,
}

impl NotifySocket {
    /// Binds an abstract name that the kernel chooses, so that it is reachable under every identity and in every
    /// mount namespace. `sender`: the user (besides root) whose messages count; `None` in a pid namespace, where
    /// processes outside are recognised by having no pid.
    pub(super) fn bind(sender: Option<u32>) -> io::Result<NotifySocket> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        bind(socket.as_raw_fd(), &UnixAddr::new_unnamed())?;
        let address: UnixAddr = getsockname(socket.as_raw_fd())?;
        let chosen =
            address.as_abstract().ok_or_else(|| io::Error::other("the kernel chose no name for the socket"))?;
        let name = OsString::from_vec([b"@", chosen].concat());
        Ok(NotifySocket { socket, name, sender })
    }

    /// The value of `NOTIFY_SOCKET`.
    pub(super) fn name(&self) -> OsString {
        self.name.clone()
    }

    pub(super) fn descriptor(&self) -> (BorrowedFd<'_>, PollFlags) {
        (self.socket.as_fd(), PollFlags::POLLIN)
    }

    pub(super) fn look(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        // Room for credentials only: descriptors that come along (FDSTORE, BARRIER) are closed by the kernel at once,
        // which is what a barrier waits for.
        let mut control = cmsg_space!(UnixCredentials);
        let mut ready = false;
        for _ in 0..MOST_A_LOOK {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let (length, accepted) = match recvmsg::<()>(
                self.socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::MSG_CMSG_CLOEXEC,
            ) {
                Ok(message) => {
                    let mut controls = message.cmsgs()?;
                    (message.bytes, controls.any(|control| self.accepts(&control)))
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            ready |= accepted && buffer[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1");
        }
        Ok(ready)
    }

    fn accepts(&self, control: &ControlMessageOwned) -> bool {
        let ControlMessageOwned::ScmCredentials(sender) = control else { return false };
        sender.pid() != 0 && self.sender.is_none_or(|uid| sender.uid() == uid || sender.uid() == 0)
    }
}
