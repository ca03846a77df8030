//! Messages of a `SOCK_SEQPACKET` socket, with the descriptors that come along, and who is at the other end.
//!
//! The other end may be anybody: a message has a limit, every descriptor that arrives is owned by the result or closed, and one that the
//! kernel could not hand over (no number free, too many) is reported. Leaves the form of a message to [`crate::socket_message`], and what
//! the bytes mean to others.

use crate::socket_message::{MOST_DESCRIPTORS, MOST_WORDS, SENDER_WORDS, Sender, receive, send, words_for};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A message that arrived.
#[derive(Debug, Default)]
pub struct Packet {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The descriptors that came along, closed at an exec.
    pub descriptors: Vec<OwnedFd>,
    /// Who sent it; `None` where the socket does not ask (`SO_PASSCRED`).
    pub sender: Option<Sender>,
    /// A part of it is missing: it was longer than was to be taken, or descriptors could not be received.
    pub is_cut: bool,
}

/// A message that was looked at. Its bytes are wiped when it goes: what this process forks later for others has none of them.
#[derive(Debug)]
pub struct Peeked {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// It is longer than was to be taken.
    pub is_cut: bool,
}

impl Drop for Peeked {
    fn drop(&mut self) {
        wipe(&mut self.bytes);
    }
}

/// Overwrites what is not to be found in memory that is freed, also where nobody reads it again (explicit_bzero(3)).
pub fn wipe(bytes: &mut [u8]) {
    // SAFETY: bytes of ours, with their true length.
    unsafe { libc::explicit_bzero(bytes.as_mut_ptr().cast(), bytes.len()) };
}

/// What is taken of a message at most.
#[derive(Clone, Copy, Debug)]
pub struct PacketLimits {
    /// Bytes.
    pub bytes: usize,
    /// Descriptors. The kernel lets go of most of those beyond, without a close that could be held up.
    pub descriptors: usize,
}

/// Whether a call waits until it can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It says `WouldBlock` instead.
    Never,
    /// Unless the socket itself is set not to.
    Forever,
}

impl Wait {
    fn flags(self) -> libc::c_int {
        match self {
            Self::Never => libc::MSG_DONTWAIT,
            Self::Forever => 0,
        }
    }
}

/// Receives one message of at most `most` bytes without waiting. `Ok(None)`: the other end is closed, or sent nothing.
///
/// # Errors
/// `WouldBlock` where nothing is there; what recvmsg(2) says otherwise. A connection that was reset counts as closed.
pub fn receive_packet(socket: impl AsFd, most: usize) -> io::Result<Option<Packet>> {
    receive_packet_with(socket, PacketLimits { bytes: most, descriptors: MOST_DESCRIPTORS }, Wait::Never)
}

/// The same within other limits, waiting or not.
///
/// # Errors
/// As [`receive_packet`].
pub fn receive_packet_with(socket: impl AsFd, limits: PacketLimits, wait: Wait) -> io::Result<Option<Packet>> {
    let mut control = [0u64; MOST_WORDS];
    let room = MOST_WORDS.min(SENDER_WORDS + words_for(limits.descriptors));
    let packet = received_packet(socket.as_fd(), limits.bytes, &mut control[..room], wait.flags())?;
    Ok(packet.map(|mut packet| {
        packet.is_cut |= packet.descriptors.len() > limits.descriptors;
        packet.descriptors.truncate(limits.descriptors);
        packet
    }))
}

/// Looks at a message without its descriptors, which stay where they are, as the message does: a process that must not hold what another
/// user has opened decides by this who receives it.
///
/// # Errors
/// As [`receive_packet`].
pub fn peek_packet(socket: impl AsFd, most: usize) -> io::Result<Option<Peeked>> {
    let packet = received_packet(socket.as_fd(), most, &mut [], libc::MSG_DONTWAIT | libc::MSG_PEEK)?;
    Ok(packet.map(|Packet { bytes, is_cut, .. }| Peeked { bytes, is_cut }))
}

/// Takes a message away; its descriptors are gone with it, without a close that could be held up.
///
/// # Errors
/// As [`receive_packet`].
pub fn discard_packet(socket: impl AsFd) -> io::Result<()> {
    received_packet(socket.as_fd(), 1, &mut [], libc::MSG_DONTWAIT).map(drop)
}

fn received_packet(
    socket: BorrowedFd<'_>,
    most: usize,
    control: &mut [u64],
    flags: libc::c_int,
) -> io::Result<Option<Packet>> {
    let mut bytes = vec![0; most];
    let mut was_reset = false;
    let arrived = loop {
        match receive(socket, &mut bytes, control, flags) {
            Ok(arrived) => break arrived,
            // The other end went without reading all that was sent to it. That is reported once, and what it said before is still there.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !was_reset => was_reset = true,
            Err(error) => return Err(error),
        }
    };
    let cut = if control.is_empty() { libc::MSG_TRUNC } else { libc::MSG_TRUNC | libc::MSG_CTRUNC };
    bytes.truncate(arrived.length);
    let (descriptors, sender) = (arrived.descriptors, arrived.sender);
    let packet = Packet { bytes, descriptors, sender, is_cut: arrived.flags & cut != 0 };
    Ok((arrived.length > 0).then_some(packet))
}

/// Sends one message with copies of these descriptors, without waiting and without a signal where the other end is gone.
///
/// # Errors
/// `WouldBlock` where the socket's buffer is full, `EMSGSIZE` where the message is larger than it; what sendmsg(2) says otherwise.
pub fn send_packet(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_packet_with(socket, bytes, descriptors, Wait::Never)
}

/// The same, waiting or not.
///
/// # Errors
/// As [`send_packet`].
pub fn send_packet_with(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>], wait: Wait) -> io::Result<()> {
    send(socket.as_fd(), bytes, descriptors, wait.flags()).map(drop)
}

/// Who connected, as the kernel knew it at that moment (unix(7), `SO_PEERCRED` and `SO_PEERGROUPS`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Thread-group id in the caller's pid namespace; 0 where it is not in it.
    pub pid: i32,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

impl Peer {
    /// That of a connected socket.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let socket = socket.as_fd().as_raw_fd();
        let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the kernel writes at most the structure, whose length it is passed.
        let done = unsafe {
            libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut who).cast(), &raw mut length)
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { pid: who.pid, uid: who.uid, gid: who.gid, groups: groups_of(socket)? })
    }
}

/// `SO_PEERGROUPS`, include/uapi/asm-generic/socket.h; Linux 4.13 and later. The libc crate has no constant for it.
const SO_PEERGROUPS: libc::c_int = 59;

fn groups_of(socket: RawFd) -> io::Result<Vec<u32>> {
    // As many as a process can have (`NGROUPS_MAX`) is 256 KiB; nearly all have a few.
    let mut groups = vec![0u32; 64];
    loop {
        let mut length = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: the kernel writes at most as many bytes as it is passed.
        let done = unsafe {
            libc::getsockopt(socket, libc::SOL_SOCKET, SO_PEERGROUPS, groups.as_mut_ptr().cast(), &raw mut length)
        };
        let count = length as usize / size_of::<u32>();
        if done == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        match io::Error::last_os_error() {
            // The length that it would take is reported.
            error if error.raw_os_error() == Some(libc::ERANGE) && count > groups.len() => groups.resize(count, 0),
            error => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use nix::unistd::{getegid, geteuid, getgroups, getpid};
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::unix::fs::FileExt;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    #[test]
    fn a_message_arrives_whole_with_its_descriptors_and_a_closed_end_differs_from_silence() {
        let (one, other) = pair();
        assert_eq!(receive_packet(&one, 9).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let (mut reader, writer) = std::io::pipe().unwrap();
        let many = vec![writer.as_fd(); MOST_DESCRIPTORS];
        send_packet(&other, b"some", &many).unwrap();
        let packet = receive_packet(&one, 9).unwrap().unwrap();
        assert_eq!(
            (&packet.bytes[..], packet.descriptors.len(), packet.is_cut),
            (&b"some"[..], MOST_DESCRIPTORS, false)
        );
        File::from(packet.descriptors.into_iter().next_back().unwrap()).write_all(b"x").unwrap();
        drop(writer);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "x", "all copies are closed");
        assert!(send_packet(&other, b"", &[one.as_fd(); MOST_DESCRIPTORS + 1]).is_err());
        drop(other);
        assert!(receive_packet(&one, 9).unwrap().is_none());
    }

    #[test]
    fn what_was_said_before_the_other_end_went_without_listening_arrives() {
        let (one, other) = pair();
        send_packet(&one, b"unread", &[]).unwrap();
        send_packet(&other, b"answer", &[]).unwrap();
        drop(other);
        assert_eq!(receive_packet(&one, 9).unwrap().unwrap().bytes, b"answer");
        assert!(receive_packet(&one, 9).unwrap().is_none());
    }

    #[test]
    fn a_message_is_looked_at_and_thrown_away_without_its_descriptors() {
        let (one, other) = pair();
        let (mut reader, writer) = std::io::pipe().unwrap();
        for text in [b"first", b"other"] {
            send_packet(&other, text, &[writer.as_fd()]).unwrap();
        }
        drop(writer);
        let peeked = peek_packet(&one, 9).unwrap().unwrap();
        assert_eq!((&peeked.bytes[..], peeked.is_cut), (&b"first"[..], false));
        assert_eq!(peek_packet(&one, 9).unwrap().unwrap().bytes, b"first", "it stays");
        discard_packet(&one).unwrap();
        let packet = receive_packet(&one, 9).unwrap().unwrap();
        assert_eq!((&packet.bytes[..], packet.descriptors.len()), (&b"other"[..], 1));
        drop(packet);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "nobody holds a copy");
        assert_eq!(peek_packet(&one, 9).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn of_a_message_that_was_looked_at_nothing_stays_in_memory() {
        let (one, other) = pair();
        send_packet(&other, &[b'~'; 4000], &[]).unwrap();
        let peeked = peek_packet(&one, 5000).unwrap().unwrap();
        let (at, length) = (peeked.bytes.as_ptr() as u64, peeked.bytes.len());
        // By the kernel, because it is freed; into memory that was there before, because the next may be the same.
        let memory = File::open("/proc/self/mem").unwrap();
        let (mut before, mut after) = (vec![0; length], vec![0; length]);
        memory.read_exact_at(&mut before, at).unwrap();
        drop(peeked);
        let _ = memory.read_exact_at(&mut after, at);
        // Another test may have other bytes there by then.
        let is_in = |bytes: &[u8]| bytes.windows(16).any(|part| part == [b'~'; 16]);
        assert!(is_in(&before) && !is_in(&after));
    }

    #[test]
    fn what_is_longer_than_was_asked_for_is_reported_as_cut() {
        let (one, other) = pair();
        send_packet(&other, b"0123456789", &[]).unwrap();
        let packet = receive_packet(&one, 4).unwrap().unwrap();
        assert!(packet.is_cut && packet.bytes == b"0123");
    }

    #[test]
    fn more_descriptors_than_were_to_be_taken_are_closed_and_reported() {
        let (one, other) = pair();
        let (mut reader, writer) = std::io::pipe().unwrap();
        for count in [1, 2, 9] {
            send_packet(&other, b"x", &vec![writer.as_fd(); count]).unwrap();
        }
        drop(writer);
        let limits = PacketLimits { bytes: 9, descriptors: 1 };
        for is_cut in [false, true, true] {
            let packet = receive_packet_with(&one, limits, Wait::Forever).unwrap().unwrap();
            assert_eq!((packet.descriptors.len(), packet.is_cut), (1, is_cut));
        }
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "nobody holds a copy");
    }

    #[test]
    fn the_peer_is_who_the_kernel_says() {
        let (one, _other) = pair();
        let peer = Peer::of(&one).unwrap();
        assert_eq!((peer.pid, peer.uid, peer.gid), (getpid().as_raw(), geteuid().as_raw(), getegid().as_raw()));
        let mut own: Vec<u32> = getgroups().unwrap().into_iter().map(|group| group.as_raw()).collect();
        let mut reported = peer.groups;
        own.sort_unstable();
        reported.sort_unstable();
        assert_eq!(reported, own);
    }
}
