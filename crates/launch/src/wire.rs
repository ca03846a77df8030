//! The messages between main and launcher: MessagePack, one in a packet of a `SOCK_SEQPACKET` socket pair. The kernel tells
//! main who sent each, by the sender's pid in main's own pid namespace.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixCredentials, recv, recvmsg, sendmsg, setsockopt, sockopt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Exit, GroupCounts, LeftOutReason, ProcessMemory, SetupStage, StopReason, ThreadTimes, TreeUsage};

/// How many mount steps one message names: some 20 bytes each, and a message must fit the socket's buffer.
pub(crate) const MOST_STEPS: usize = 1024;

/// From main to the observer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToLauncher {
    /// Start the clock and let the target exec.
    Release,
    /// End the launch as its policy says; nothing, between two launches.
    Stop,
    /// Make the next launch: its order stands where the first one stood.
    Again {
        /// Its length in bytes; what stands behind it is left of a longer one.
        bytes: usize,
    },
}

/// From the launcher to main.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromLauncher {
    /// Sent by the observer itself: its pid is the sender's.
    Observing {
        /// The page address given to a browser.
        url: Option<String>,
    },
    /// Sent by the target-to-be: its pid is the sender's. It waits for its release.
    Prepared,
    /// Mount steps that were not carried out, by their position.
    LeftOut { steps: Vec<(usize, LeftOutReason)> },
    /// A step before the exec failed; sent by whoever carried it out.
    SetupFailed { stage: SetupStage, errno: i32 },
    /// The clock started.
    Released { at: u64 },
    /// `execve` failed.
    ExecFailed { failure: ExecFailure, errno: i32, program: String },
    /// The target is ready.
    Ready { at: u64 },
    /// The last message of the observer.
    Ended(Box<Ended>),
    /// Sent by the guardian when the observer died; the guardian ended the tree.
    ObserverDied { how: String, survivors: Vec<i32> },
}

/// How an exec failed, told apart by the process that could look at the file with the target's rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ExecFailure {
    NotFound,
    MissingInterpreter,
    NotExecutable,
    PermissionDenied,
    Other,
}

/// What the observer saw by the end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) stop: EndCause,
    /// The target's pid in the observer's pid namespace.
    pub(crate) pid: i32,
    /// The page address given to a browser.
    pub(crate) url: Option<String>,
    /// Time zero; `None` when the target did not come to its exec.
    pub(crate) released_at: Option<u64>,
    pub(crate) ready_at: Option<u64>,
    pub(crate) exit: Option<Exit>,
    pub(crate) usage: Option<TreeUsage>,
    pub(crate) first_thread: Option<ThreadTimes>,
    pub(crate) groups: Option<GroupCounts>,
    pub(crate) memory: Vec<ProcessMemory>,
    pub(crate) stdout_tail: Option<String>,
    pub(crate) stderr_tail: Option<String>,
    /// Processes left after the time allowed, in the observer's pid namespace.
    pub(crate) survivors: Vec<i32>,
}

impl Ended {
    /// Whether the launcher can go on to another launch.
    pub(crate) fn leaves_nothing(&self) -> bool {
        self.survivors.is_empty() && self.stop != EndCause::GuardianDied
    }
}

/// Why the observer ended the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EndCause {
    /// One of the outcomes that a caller sees.
    Stop(StopReason),
    /// The target ended before it was released.
    NeverReleased,
    /// The guardian was killed.
    GuardianDied,
}

/// A connected pair: main's end, the launcher's end. Both are close-on-exec.
pub(crate) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let (main, launcher) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    setsockopt(&main, sockopt::PassCred, &true)?;
    Ok((main, launcher))
}

/// A message, or anything else that goes between main and launcher, as bytes: what takes long here is time between two
/// launches. Without the names of fields, because both ends are the same program.
pub(crate) fn encoded(message: &impl Serialize) -> io::Result<Vec<u8>> {
    rmp_serde::to_vec(message).map_err(io::Error::other)
}

/// The other way round.
pub(crate) fn decoded<M: DeserializeOwned>(bytes: &[u8]) -> io::Result<M> {
    rmp_serde::from_slice(bytes).map_err(io::Error::other)
}

/// Sends one message, without a signal when the other end is gone.
pub(crate) fn send(socket: impl AsFd, message: &impl Serialize) -> io::Result<()> {
    let text = encoded(message)?;
    loop {
        let parts = [IoSlice::new(&text)];
        match sendmsg::<()>(socket.as_fd().as_raw_fd(), &parts, &[], MsgFlags::MSG_NOSIGNAL, None) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one message without waiting, and its sender's pid where the socket asks for credentials (0 elsewhere).
/// `Ok(None)`: the other end is closed. `WouldBlock`: nothing is there.
pub(crate) fn receive<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(M, i32)>> {
    // The length first: the observer asks often, mostly in vain, and must not allocate for that.
    let look = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC;
    let length = loop {
        match recv(socket.as_fd().as_raw_fd(), &mut [], look) {
            Ok(length) => break length,
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut buffer = vec![0u8; length];
    let mut control = cmsg_space!(UnixCredentials);
    let (length, sender) = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut parts, Some(&mut control), flags) {
            Ok(message) => {
                let mut sender = 0;
                for control in message.cmsgs()? {
                    if let ControlMessageOwned::ScmCredentials(credentials) = control {
                        sender = credentials.pid();
                    }
                }
                break (message.bytes, sender);
            }
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    if length == 0 {
        return Ok(None);
    }
    Ok(Some((decoded(&buffer[..length])?, sender)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_end_message_passes_whole_and_a_closed_end_is_told_from_an_empty_one() {
        let (main, launcher) = channel().unwrap();
        let waiting = receive::<FromLauncher>(&main).unwrap_err();
        assert_eq!(waiting.kind(), io::ErrorKind::WouldBlock);
        let tail = "\u{1}".repeat(4096);
        let ended = Ended {
            stop: EndCause::Stop(StopReason::TimedOut),
            pid: 1,
            url: None,
            released_at: Some(1),
            ready_at: None,
            exit: Some(Exit::Signal(9)),
            usage: None,
            first_thread: None,
            groups: None,
            memory: Vec::new(),
            stdout_tail: Some(tail.clone()),
            stderr_tail: Some(tail.clone()),
            survivors: Vec::new(),
        };
        send(&launcher, &FromLauncher::Ended(Box::new(ended))).unwrap();
        let (message, sender) = receive::<FromLauncher>(&main).unwrap().unwrap();
        assert_eq!(sender, std::process::id() as i32);
        let FromLauncher::Ended(ended) = message else { panic!("another message") };
        assert_eq!(ended.stderr_tail, Some(tail));
        drop(launcher);
        assert!(receive::<FromLauncher>(&main).unwrap().is_none());
    }
}
