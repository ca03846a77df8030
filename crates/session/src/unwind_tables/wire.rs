//! What the recorder and the processes that make tables say to each other: small messages, with a file descriptor each.
//!
//! The recorder trusts none of it: a message has a longest length and a fixed form, descriptors beyond the first are closed, and
//! nothing is asked of a descriptor that a file system of the user's could delay ([`mapped`] and [`seen`] say how).

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slowpath_tables::FileKey;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Asks for the table of the file that comes along.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request;

/// Tells that a program maps the file that comes along.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapped {
    /// The inode's generation, where the file system reports it.
    pub generation: Option<u32>,
}

/// An answer; the table comes along as a sealed file in memory, where there is one: pages, then rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// See [`slowpath_capture::TableParts`].
    pub first_page: u32,
    /// Pages, with the one more.
    pub pages: u32,
    /// Rows.
    pub rows: u32,
}

/// Longest message, many times over.
const LONGEST: usize = 256;

/// Descriptors that the kernel lets come with a message (`SCM_MAX_FD`, include/net/scm.h): with less room some would come and stay open.
const MOST_DESCRIPTORS: usize = 253;

/// The seals without which what is in memory could change while it is read.
pub const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_WRITE);

/// Sends a message, and `file` with it.
///
/// # Errors
/// The other side is gone, or its queue is full and `flags` say not to wait.
pub fn send(socket: &OwnedFd, message: &impl Serialize, file: Option<&File>, flags: MsgFlags) -> nix::Result<()> {
    let bytes = rmp_serde::to_vec(message).map_err(|_| Errno::EINVAL)?;
    let descriptors: Vec<i32> = file.iter().map(|file| file.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let attached = if descriptors.is_empty() { &rights[..0] } else { &rights[..] };
    let flags = flags | MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], attached, flags, None).map(|_| ())
}

/// What came.
#[derive(Debug)]
pub enum Received<T> {
    /// A message, and the file that came with it.
    Message(T, Option<File>),
    /// Nothing yet.
    Nothing,
    /// The other side has ended, or does not keep to the form.
    End,
}

/// The next message.
pub fn receive<T: DeserializeOwned>(socket: &impl AsFd, flags: MsgFlags) -> Received<T> {
    let mut bytes = [0; LONGEST];
    let mut space = nix::cmsg_space!([i32; MOST_DESCRIPTORS]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
    let (length, descriptors) = {
        let message = match recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Received::Nothing,
            Err(_) => return Received::End,
        };
        let Ok(attached) = message.cmsgs() else { return Received::End };
        let descriptors: Vec<i32> = attached
            .filter_map(|one| match one {
                ControlMessageOwned::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        (message.bytes, descriptors)
    };
    // SAFETY: the kernel just made these descriptors for this process; each is owned here and nowhere else. Those that are not
    // asked for are closed with the rest of the list.
    let owned = descriptors.into_iter().map(|descriptor| unsafe { File::from_raw_fd(descriptor) });
    let file = owned.collect::<Vec<_>>().into_iter().next();
    match rmp_serde::from_slice(&bytes[..length]) {
        Ok(message) if length > 0 => Received::Message(message, file),
        _ => Received::End,
    }
}

/// Whether a file is one in memory that nobody can change, cut or delay: only such files have seals (fcntl(2)).
pub fn is_sealed(file: &File) -> bool {
    fcntl(file, FcntlArg::F_GET_SEALS).is_ok_and(|seals| SealFlag::from_bits_truncate(seals).contains(SEALS))
}

/// What is known of a file without asking its file system, which may be the user's own and never answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Device and inode, the device in the kernel's own form, as in all records.
    pub key: FileKey,
    /// Bytes.
    pub size: u64,
}

/// See [`Seen`]; none for what is no regular file.
pub fn seen(file: &impl AsFd) -> Option<Seen> {
    // SAFETY: the structure consists of integers, the path is a constant, and the kernel fills one structure.
    let (told, done) = unsafe {
        let mut told: libc::statx = std::mem::zeroed();
        let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
        let wanted = libc::STATX_TYPE | libc::STATX_INO | libc::STATX_SIZE;
        let done = libc::statx(file.as_fd().as_raw_fd(), c"".as_ptr(), flags, wanted, &raw mut told);
        (told, done)
    };
    let is_regular = u32::from(told.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    let dev = u64::from(told.stx_dev_major) << 20 | u64::from(told.stx_dev_minor);
    (done == 0 && is_regular).then_some(Seen { key: FileKey { dev, ino: told.stx_ino }, size: told.stx_size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use std::os::unix::fs::MetadataExt;

    fn sockets() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    #[test]
    fn a_message_arrives_with_its_file() {
        let (one, other) = sockets();
        let file = tempfile::tempfile().unwrap();
        let answer = Answer { first_page: 7, rows: 3, pages: 2 };
        send(&one, &answer, Some(&file), MsgFlags::empty()).unwrap();
        send(&one, &Request, None, MsgFlags::empty()).unwrap();
        assert!(
            matches!(receive::<Answer>(&other, MsgFlags::empty()), Received::Message(told, Some(_)) if told == answer)
        );
        assert!(matches!(receive::<Request>(&other, MsgFlags::empty()), Received::Message(Request, None)));
        assert!(matches!(receive::<Request>(&other, MsgFlags::MSG_DONTWAIT), Received::Nothing));
        drop(one);
        assert!(matches!(receive::<Request>(&other, MsgFlags::empty()), Received::End));
    }

    #[test]
    fn more_descriptors_than_one_are_closed_and_what_has_no_form_is_an_end() {
        let (one, other) = sockets();
        let file = tempfile::tempfile().unwrap();
        let open =
            || std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| entry.ok()?.path().read_link().ok());
        let inode = format!("{}", file.metadata().unwrap().ino());
        let copies = || open().filter(|path| path.to_string_lossy().contains(&inode)).count();
        let before = copies();
        let many = vec![file.as_raw_fd(); MOST_DESCRIPTORS];
        let bytes = rmp_serde::to_vec(&Answer::default()).unwrap();
        for content in [bytes.as_slice(), b"\xff\xff", &[0; 4096], b""] {
            let rights = [ControlMessage::ScmRights(&many)];
            sendmsg::<()>(one.as_raw_fd(), &[IoSlice::new(content)], &rights, MsgFlags::empty(), None).unwrap();
            let received = receive::<Answer>(&other, MsgFlags::empty());
            assert_eq!(matches!(received, Received::Message(..)), content == bytes.as_slice(), "{received:?}");
            drop(received);
            assert_eq!(copies(), before);
        }
    }

    #[test]
    fn only_a_sealed_file_in_memory_is_taken() {
        let memory = File::from(memfd_create(c"x", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap());
        assert!(!is_sealed(&memory));
        fcntl(&memory, FcntlArg::F_ADD_SEALS(SEALS)).unwrap();
        assert!(is_sealed(&memory));
        let (pipe, _writer) = nix::unistd::pipe().unwrap();
        assert!(!is_sealed(&File::from(pipe)) && !is_sealed(&tempfile::tempfile().unwrap()));
    }

    #[test]
    fn a_regular_file_is_seen_as_records_name_it_and_others_are_not() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(7).unwrap();
        let metadata = file.metadata().unwrap();
        let dev = u64::from(libc::major(metadata.dev())) << 20 | u64::from(libc::minor(metadata.dev()));
        assert_eq!(seen(&file), Some(Seen { key: FileKey { dev, ino: metadata.ino() }, size: 7 }));
        assert_eq!(seen(&File::open("/dev/null").unwrap()), None);
        assert_eq!(seen(&nix::unistd::pipe().unwrap().0), None);
    }
}
