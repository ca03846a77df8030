//! What the recorder and the process that makes tables say to each other: small messages, with a file descriptor each.

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slowpath_tables::FileKey;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// What is asked for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The table of the file that comes along, or of the vdso where none does.
    Module(u32),
    /// The tables of everything that this program maps when it starts; the end is told with module [`DONE`].
    Program(PathBuf),
}

/// Number in the last answer to [`Request::Program`].
pub const DONE: u32 = u32::MAX;

/// An answer; the table comes along as a file in memory, where there is one: pages, then rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The number that was asked for; 0 for a file of a program.
    pub module: u32,
    /// See [`slowpath_capture::TableParts`].
    pub first_page: u32,
    /// Pages, with the one more.
    pub pages: u32,
    /// Rows.
    pub rows: u32,
    /// Device and inode of a file of a program.
    pub file: Option<(u64, u64)>,
    /// The inode's generation, where the file system tells it.
    pub generation: Option<u32>,
}

impl Answer {
    /// The file of a program.
    pub fn key(&self) -> Option<FileKey> {
        self.file.map(|(dev, ino)| FileKey { dev, ino })
    }
}

/// Longest message: a path and little more.
const LONGEST: usize = 8192;

/// Sends a message, and `file` with it.
///
/// # Errors
/// The other side is gone, or its queue is full and `flags` say not to wait.
pub fn send(socket: &OwnedFd, message: &impl Serialize, file: Option<&File>, flags: MsgFlags) -> nix::Result<()> {
    let bytes = rmp_serde::to_vec(message).map_err(|_| nix::errno::Errno::EINVAL)?;
    let descriptors: Vec<i32> = file.iter().map(|file| file.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let attached = if descriptors.is_empty() { &rights[..0] } else { &rights[..] };
    let flags = flags | MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], attached, flags, None).map(|_| ())
}

/// A message and the file that came with it; `None` at the end, for one that cannot be understood, and when there is none.
pub fn receive<T: DeserializeOwned>(socket: &impl AsFd, flags: MsgFlags) -> Option<(T, Option<File>)> {
    let mut bytes = [0; LONGEST];
    let mut space = nix::cmsg_space!([i32; 1]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
    let (length, descriptors) = {
        let message = recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut parts, Some(&mut space), flags).ok()?;
        let descriptors: Vec<i32> = message
            .cmsgs()
            .ok()?
            .filter_map(|one| match one {
                ControlMessageOwned::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        (message.bytes, descriptors)
    };
    // SAFETY: the kernel just made these descriptors for this process; each is owned here and nowhere else.
    let mut files = descriptors.into_iter().map(|descriptor| unsafe { File::from_raw_fd(descriptor) });
    let file = files.next();
    Some((rmp_serde::from_slice(&bytes[..length]).ok()?, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    #[test]
    fn a_message_arrives_with_its_file() {
        let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::empty()).unwrap();
        let file = tempfile::tempfile().unwrap();
        let answer = Answer { module: 7, rows: 3, file: Some((1, 2)), ..Answer::default() };
        send(&one, &answer, Some(&file), MsgFlags::empty()).unwrap();
        send(&one, &Request::Program(PathBuf::from("/bin/x")), None, MsgFlags::empty()).unwrap();
        drop(one);
        let (received, file) = receive::<Answer>(&other, MsgFlags::empty()).unwrap();
        assert_eq!((received, file.is_some()), (answer, true));
        assert_eq!(receive::<Request>(&other, MsgFlags::empty()).unwrap().0, Request::Program(PathBuf::from("/bin/x")));
        assert!(receive::<Request>(&other, MsgFlags::empty()).is_none());
    }
}
