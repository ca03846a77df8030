//! What the recorder and the processes that make tables say to each other: small messages, with a file descriptor each.
//!
//! The recorder trusts none of it: a message has a longest length and a fixed form, descriptors beyond the first are closed, and
//! nothing is asked of a descriptor that a file system of the user's could delay ([`mapped`] and [`seen`] say how).

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slowpath_process::{MOST_DESCRIPTORS, PacketLimits, Wait, receive_packet_with, send_packet_with};
use slowpath_tables::FileKey;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

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
pub struct TableAnswer {
    /// See [`slowpath_capture::TableParts`].
    pub first_page: u32,
    /// Pages, with the one more.
    pub pages: u32,
    /// Rows.
    pub rows: u32,
}

/// Bytes of the longest message, many times over, and as many descriptors as can come: those beyond the first are closed.
const LIMITS: PacketLimits = PacketLimits { bytes: 256, descriptors: MOST_DESCRIPTORS };

/// The seals without which what is in memory could change while it is read.
pub const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_WRITE);

/// Sends a message, and `file` with it.
///
/// # Errors
/// The other side is gone, or its queue is full and this is not to wait.
pub fn send(socket: &OwnedFd, message: &impl Serialize, file: Option<&File>, wait: Wait) -> io::Result<()> {
    let bytes = rmp_serde::to_vec(message).map_err(io::Error::other)?;
    let descriptors: Vec<BorrowedFd<'_>> = file.into_iter().map(AsFd::as_fd).collect();
    send_packet_with(socket, &bytes, &descriptors, wait)
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
pub fn receive<T: DeserializeOwned>(socket: &impl AsFd, wait: Wait) -> Received<T> {
    let packet = match receive_packet_with(socket, LIMITS, wait) {
        Ok(Some(packet)) if !packet.is_cut => packet,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Received::Nothing,
        _ => return Received::End,
    };
    match rmp_serde::from_slice(&packet.bytes) {
        Ok(message) => Received::Message(message, packet.descriptors.into_iter().next().map(File::from)),
        Err(_) => Received::End,
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
    let (stat, done) = unsafe {
        let mut stat: libc::statx = std::mem::zeroed();
        let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
        let wanted = libc::STATX_TYPE | libc::STATX_INO | libc::STATX_SIZE;
        let done = libc::statx(file.as_fd().as_raw_fd(), c"".as_ptr(), flags, wanted, &raw mut stat);
        (stat, done)
    };
    let is_regular = u32::from(stat.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    let dev = u64::from(stat.stx_dev_major) << 20 | u64::from(stat.stx_dev_minor);
    (done == 0 && is_regular).then_some(Seen { key: FileKey { dev, ino: stat.stx_ino }, size: stat.stx_size })
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
        let answer = TableAnswer { first_page: 7, rows: 3, pages: 2 };
        send(&one, &answer, Some(&file), Wait::Forever).unwrap();
        send(&one, &Request, None, Wait::Forever).unwrap();
        assert!(
            matches!(receive::<TableAnswer>(&other, Wait::Forever), Received::Message(message, Some(_)) if message == answer)
        );
        assert!(matches!(receive::<Request>(&other, Wait::Forever), Received::Message(Request, None)));
        assert!(matches!(receive::<Request>(&other, Wait::Never), Received::Nothing));
        drop(one);
        assert!(matches!(receive::<Request>(&other, Wait::Forever), Received::End));
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
        let many = vec![file.as_fd(); MOST_DESCRIPTORS];
        let bytes = rmp_serde::to_vec(&TableAnswer::default()).unwrap();
        for content in [bytes.as_slice(), b"\xff\xff", &[0; 4096], b""] {
            send_packet_with(&one, content, &many, Wait::Forever).unwrap();
            let received = receive::<TableAnswer>(&other, Wait::Forever);
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
