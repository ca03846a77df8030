//! One sendmsg(2) or recvmsg(2) on a socket of this machine (unix(7)): bytes, the descriptors that come along (`SCM_RIGHTS`), and who sent
//! them where the socket asks (`SO_PASSCRED`).
//!
//! Owns the control part of a message, in both directions: nothing else here makes or reads one. Every descriptor that arrives is closed at
//! an exec, and is owned by the result before anything else is looked at. Leaves to others where a message ends (`packet`, `deadline`), and
//! whom they believe.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors of a message at most (`SCM_MAX_FD`, include/net/scm.h).
pub const MOST_DESCRIPTORS: usize = 253;

/// Words for the sender and for as many descriptors as a message can have: `u64`, because `struct cmsghdr` must be aligned so.
pub(crate) const MOST_WORDS: usize = SENDER_WORDS + words_for(MOST_DESCRIPTORS);

/// Words for the sender.
pub(crate) const SENDER_WORDS: usize = words(size_of::<libc::ucred>());

/// Words for that many descriptors. One more can fit where they are odd in number, for a header's data is padded.
pub(crate) const fn words_for(descriptors: usize) -> usize {
    words(descriptors * size_of::<RawFd>())
}

const fn words(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    // SAFETY: pure arithmetic.
    let space = unsafe { libc::CMSG_SPACE(bytes as libc::c_uint) };
    (space as usize).div_ceil(size_of::<u64>())
}

/// Who sent a message, as the kernel says it (`SCM_CREDENTIALS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Thread-group id in the receiver's pid namespace; 0 where it is not in it.
    pub pid: i32,
    /// User id: the real one, unless a privileged sender named another.
    pub uid: u32,
}

/// What arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Bytes of the message that were taken.
    pub length: usize,
    /// The descriptors that came along.
    pub descriptors: Vec<OwnedFd>,
    /// Who sent; `None` where the socket does not ask.
    pub sender: Option<Sender>,
    /// What the kernel says of it (`MSG_TRUNC`, `MSG_CTRUNC`).
    pub flags: libc::c_int,
}

/// Sends bytes with copies of these descriptors, without a signal where the other end is gone. Returns how many bytes were taken.
///
/// # Errors
/// More descriptors than a message takes; what sendmsg(2) says otherwise, but for interruptions by signals.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: libc::c_int,
) -> io::Result<usize> {
    if descriptors.len() > MOST_DESCRIPTORS {
        let text = format!("a message takes {MOST_DESCRIPTORS} descriptors, not {}", descriptors.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let mut control = [0u64; MOST_WORDS];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a structure of integers and pointers, of which all-zero is a value.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if !numbers.is_empty() {
        let length = size_of_val(numbers.as_slice()) as u32;
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: pure arithmetic; 253 descriptors take less than the control part has.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as _;
        // SAFETY: the control part is aligned, zeroed and long enough for one header with these numbers behind it.
        unsafe {
            let one = libc::CMSG_FIRSTHDR(&raw const header);
            (*one).cmsg_level = libc::SOL_SOCKET;
            (*one).cmsg_type = libc::SCM_RIGHTS;
            (*one).cmsg_len = libc::CMSG_LEN(length) as _;
            libc::CMSG_DATA(one).cast::<RawFd>().copy_from_nonoverlapping(numbers.as_ptr(), numbers.len());
        }
    }
    loop {
        // SAFETY: the header names memory of ours with its true lengths; the kernel only reads it.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, flags | libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => return Ok(sent),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

/// Receives bytes, and what fits into `control`: of descriptors that do not, the kernel lets go itself. Without room for any they stay where
/// they are when the message is only looked at.
///
/// # Errors
/// What recvmsg(2) says, but for interruptions by signals.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    control: &mut [u64],
    flags: libc::c_int,
) -> io::Result<Arrived> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a structure of integers and pointers, of which all-zero is a value.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if !control.is_empty() {
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(control) as _;
    }
    let length = loop {
        // SAFETY: the header names memory of ours with its true lengths, and all of it lives until the call returns.
        let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags | libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(length) {
            Ok(length) => break length,
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    };
    // First of all, so that whatever follows, none stays open.
    let mut arrived = Arrived { length, descriptors: Vec::new(), sender: None, flags: header.msg_flags };
    if !control.is_empty() {
        take_control(&header, &mut arrived);
    }
    Ok(arrived)
}

/// What the control part of a received message holds.
fn take_control(header: &libc::msghdr, arrived: &mut Arrived) {
    // SAFETY: the kernel filled the control part of this header, and these macros walk it within the length that it set.
    let mut one = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !one.is_null() {
        // SAFETY: not null, so it points to a whole header inside the control part, which is aligned for it.
        let about = unsafe { &*one };
        // SAFETY: pure arithmetic.
        let empty = unsafe { libc::CMSG_LEN(0) } as usize;
        let length = (about.cmsg_len as usize).saturating_sub(empty);
        // SAFETY: the data of this header, as long as the kernel said.
        let data = unsafe { libc::CMSG_DATA(one) };
        match (about.cmsg_level, about.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                for index in 0..length / size_of::<RawFd>() {
                    // SAFETY: inside the data; a descriptor that the kernel has just made for this process, and that nobody else owns.
                    let one = unsafe { OwnedFd::from_raw_fd(data.cast::<RawFd>().add(index).read_unaligned()) };
                    arrived.descriptors.push(one);
                }
            }
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if length >= size_of::<libc::ucred>() => {
                // SAFETY: inside the data, and a structure of integers.
                let who = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                arrived.sender = Some(Sender { pid: who.pid, uid: who.uid });
            }
            _ => {}
        }
        // SAFETY: as of the first.
        one = unsafe { libc::CMSG_NXTHDR(header, one) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
    use nix::unistd::{getpid, getuid};
    use std::io::Read;
    use std::os::fd::AsFd;

    fn pair(kind: SockType) -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    #[test]
    fn the_sender_is_reported_where_the_socket_asks_and_nowhere_else() {
        let (one, other) = pair(SockType::SeqPacket);
        let received = || receive(one.as_fd(), &mut [0; 9], &mut [0; MOST_WORDS], 0).unwrap();
        assert_eq!(send(other.as_fd(), b"x", &[other.as_fd()], 0).unwrap(), 1);
        let arrived = received();
        assert_eq!((arrived.length, arrived.descriptors.len(), arrived.sender), (1, 1, None));
        setsockopt(&one, sockopt::PassCred, &true).unwrap();
        send(other.as_fd(), b"x", &[other.as_fd()], 0).unwrap();
        let arrived = received();
        let own = Sender { pid: getpid().as_raw(), uid: getuid().as_raw() };
        assert_eq!((arrived.descriptors.len(), arrived.sender), (1, Some(own)));
    }

    #[test]
    fn what_does_not_fit_is_closed_and_reported() {
        let (one, other) = pair(SockType::SeqPacket);
        setsockopt(&one, sockopt::PassCred, &true).unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(other.as_fd(), b"x", &[writer.as_fd(); 5], 0).unwrap();
        send(other.as_fd(), b"y", &[writer.as_fd()], 0).unwrap();
        drop(writer);
        let mut control = [0; SENDER_WORDS + words_for(1)];
        let arrived = receive(one.as_fd(), &mut [0; 9], &mut control, 0).unwrap();
        assert!(arrived.flags & libc::MSG_CTRUNC != 0 && arrived.descriptors.len() <= 2, "{arrived:?}");
        drop(arrived);
        let arrived = receive(one.as_fd(), &mut [0; 9], &mut control[..SENDER_WORDS], 0).unwrap();
        assert!(arrived.flags & libc::MSG_CTRUNC != 0 && arrived.descriptors.is_empty(), "{arrived:?}");
        assert!(arrived.sender.is_some());
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "nobody holds a copy");
    }

    #[test]
    fn of_a_stream_descriptors_come_with_the_first_bytes_that_they_were_sent_with() {
        let (one, other) = pair(SockType::Stream);
        send(other.as_fd(), b"head", &[], 0).unwrap();
        send(other.as_fd(), b"body", &[other.as_fd()], 0).unwrap();
        let mut seen: Vec<(usize, usize)> = Vec::new();
        let mut bytes = [0; 6];
        while seen.iter().map(|(length, _)| length).sum::<usize>() < 8 {
            let arrived = receive(one.as_fd(), &mut bytes, &mut [0; words_for(1)], 0).unwrap();
            seen.push((arrived.length, arrived.descriptors.len()));
        }
        assert_eq!(seen.iter().map(|(_, descriptors)| descriptors).sum::<usize>(), 1, "{seen:?}");
    }
}
