//! `notify`: the datagram socket of `sd_notify(3)`.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use nix::poll::PollFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, getsockname, setsockopt, socket, sockopt};
use slowpath_process::{Packet, PacketLimits, Sender, Wait, receive_packet_with};

/// Room for the sender only: descriptors that come along (FDSTORE, BARRIER) are closed by the kernel at once, which is what a barrier waits
/// for. Of a message that is longer the beginning counts.
const LIMITS: PacketLimits = PacketLimits { bytes: 4096, descriptors: 0 };

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
        let mut ready = false;
        for _ in 0..MOST_A_LOOK {
            match receive_packet_with(&self.socket, LIMITS, Wait::Never) {
                Ok(Some(packet)) => ready |= self.says_ready(&packet),
                // Without a byte: nothing is ever closed here.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(ready)
    }

    fn says_ready(&self, packet: &Packet) -> bool {
        packet.sender.is_some_and(|sender| self.accepts(sender))
            && packet.bytes.split(|byte| *byte == b'\n').any(|line| line == b"READY=1")
    }

    fn accepts(&self, sender: Sender) -> bool {
        sender.pid != 0 && self.sender.is_none_or(|uid| sender.uid == uid || sender.uid == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
    use std::io::IoSlice;

    /// Sends these to it, each with the descriptor or without: sd_pid_notify_with_fds(3), sd_notify_barrier(3).
    fn notify(socket: &NotifySocket, messages: &[(&[u8], bool)], descriptor: &impl AsRawFd) {
        let flags = SockFlag::SOCK_CLOEXEC;
        let sender = nix::sys::socket::socket(AddressFamily::Unix, SockType::Datagram, flags, None).unwrap();
        let name = socket.name().into_vec();
        let address = UnixAddr::new_abstract(&name[1..]).unwrap();
        let descriptors = [descriptor.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&descriptors)];
        for (bytes, with_descriptor) in messages {
            let attached = if *with_descriptor { &rights[..] } else { &rights[..0] };
            let (parts, none) = ([IoSlice::new(bytes)], MsgFlags::empty());
            sendmsg(sender.as_raw_fd(), &parts, attached, none, Some(&address)).unwrap();
        }
    }

    #[test]
    fn a_message_that_brings_a_descriptor_counts_as_any_other_and_the_descriptor_is_closed() {
        let mut socket = NotifySocket::bind(None).unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        notify(&socket, &[(b"BARRIER=1", true), (b"STATUS=READY=1", false), (b"", false)], &writer);
        assert!(!socket.look().unwrap());
        notify(&socket, &[(b"FDSTORE=1\nREADY=1", true), (b"BARRIER=1", true)], &writer);
        assert!(socket.look().unwrap());
        drop(writer);
        // A child of another test has a copy of what was dropped, until it leaves.
        assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0, "nobody holds a copy");
        assert!(!socket.look().unwrap());
    }

    #[test]
    fn who_is_not_seen_or_another_user_is_not_believed() {
        let sender = |pid, uid| Sender { pid, uid };
        let socket = NotifySocket::bind(Some(1000)).unwrap();
        assert!(socket.accepts(sender(7, 1000)) && socket.accepts(sender(7, 0)) && !socket.accepts(sender(7, 1001)));
        let in_namespace = NotifySocket::bind(None).unwrap();
        assert!(in_namespace.accepts(sender(7, 1001)) && !in_namespace.accepts(sender(0, 0)));
        let unknown = Packet { bytes: b"READY=1".to_vec(), ..Packet::default() };
        assert!(!in_namespace.says_ready(&unknown), "who does not say who it is");
    }
}
