//! The messages between main and launcher: MessagePack, one in a packet of a `SOCK_SEQPACKET` socket pair. The kernel reports
//! the receiver who sent each ([`Sender`]): an order is taken from main alone, and from a process that is another user's already
//! main takes what such a process may say, and nothing else. Leaves packets, and the descriptors in them, to `slowpath_process`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, setsockopt, socketpair, sockopt};
use nix::unistd::getuid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slowpath_process::{PacketLimits, Wait, receive_packet_with, send_packet_with};

use crate::{Exit, GroupCounts, LeftOutReason, ProcessMemory, SetupStage, StopReason, ThreadTimes, TreeUsage};

/// How many mount steps one message names: some 20 bytes each, and a message must fit the socket's buffer.
pub(crate) const MOST_STEPS: usize = 1024;

/// From main to the observer. `O` is an order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToLauncher<O = ()> {
    /// Start the clock and let the target exec.
    Release,
    /// End the launch as its policy says; nothing, between two launches.
    Stop,
    /// Ctrl-C at main's terminal, for a target that has no part in it.
    Interrupt,
    /// Make the next launch, of this order; none: it comes along in a sealed memory file, which is more expensive and takes any size.
    Again(Option<O>),
}

/// From the launcher to main.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromLauncher {
    /// Sent by the observer itself: its pid is the sender's. The caller's end of [`crate::LaunchSpec::devtools`] comes along.
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

/// How an exec failed, as seen by the process that could look at the file with the target's rights.
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

/// A connected pair: main's end, the launcher's end. Both are close-on-exec, and tell the receiver who sent.
pub(crate) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let (main, launcher) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    setsockopt(&main, sockopt::PassCred, &true)?;
    setsockopt(&launcher, sockopt::PassCred, &true)?;
    Ok((main, launcher))
}

/// Who sent a message, as the kernel says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    /// In the receiver's pid namespace: 0 for a process outside of it, and where the socket does not ask.
    pub(crate) pid: i32,
    /// Real user id. The overflow id where the socket does not ask.
    pub(crate) uid: u32,
}

impl Sender {
    const UNKNOWN: Self = Self { pid: 0, uid: slowpath_process::NOBODY };

    /// Whether it is the process `main`, which has this process's user. `in_namespace`: this process cannot see it, and nobody of the
    /// processes that it can see.
    pub(crate) fn is_main(self, main: i32, in_namespace: bool) -> bool {
        self.uid == getuid().as_raw() && self.pid == if in_namespace { 0 } else { main }
    }
}

impl FromLauncher {
    /// Whether the sender may say this. One with another user than main's can only be the target-to-be, which has its user by then: it
    /// waits, or says why it does not. All else, what root acts on included, comes from processes of the launcher.
    pub(crate) fn may_come_from(&self, sender: Sender) -> bool {
        sender.uid == getuid().as_raw() || matches!(self, Self::Prepared | Self::SetupFailed { .. })
    }
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
    send_with(socket, message, None)
}

/// Sends one message, and a descriptor with it.
pub(crate) fn send_with(socket: impl AsFd, message: &impl Serialize, file: Option<&File>) -> io::Result<()> {
    send_bytes(socket, &encoded(message)?, file)
}

/// Sends an order: in the message where that takes it.
pub(crate) fn send_order(socket: impl AsFd, order: &impl Serialize) -> io::Result<()> {
    let bytes = encoded(&ToLauncher::Again(Some(order)))?;
    if bytes.len() <= MOST_IN_MESSAGE {
        return send_bytes(socket, &bytes, None);
    }
    send_with(socket, &ToLauncher::<()>::Again(None), Some(&sealed(&encoded(order)?)?))
}

fn send_bytes(socket: impl AsFd, bytes: &[u8], file: Option<&File>) -> io::Result<()> {
    let files: Vec<BorrowedFd<'_>> = file.into_iter().map(AsFd::as_fd).collect();
    send_packet_with(socket, bytes, &files, Wait::Forever)
}

/// A message with its sender, and the descriptor that came along.
#[derive(Debug)]
pub(crate) struct Received<M> {
    pub(crate) message: M,
    pub(crate) sender: Sender,
    pub(crate) file: Option<File>,
}

/// Bytes of a message that are taken at most: the largest is an end with two tails and the memory of some thousand processes.
const MOST_BYTES: usize = 4 << 20;

/// Receives one message without waiting. `Ok(None)`: the other end is closed. `WouldBlock`: nothing is there. One that did not arrive
/// whole, or with more than one descriptor, is an error.
pub(crate) fn receive<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<Received<M>>> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
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
    if length > MOST_BYTES {
        return Err(wrong(format!("a message of {length} bytes")));
    }
    let limits = PacketLimits { bytes: length, descriptors: 1 };
    let Some(packet) = receive_packet_with(&socket, limits, Wait::Never)? else { return Ok(None) };
    if packet.is_cut {
        return Err(wrong("a message that did not arrive whole".to_owned()));
    }
    let sender = packet.sender.map_or(Sender::UNKNOWN, |from| Sender { pid: from.pid, uid: from.uid });
    let file = packet.descriptors.into_iter().next().map(File::from);
    Ok(Some(Received { message: decoded(&packet.bytes)?, sender, file }))
}

/// What a file of [`sealed`] has, and one that is taken for an order must have: it cannot change any more.
const SEALS: SealFlag =
    SealFlag::F_SEAL_WRITE.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_SHRINK).union(SealFlag::F_SEAL_SEAL);

/// Bytes of an order that a message takes: a socket's buffer holds three times as many (`net.core.wmem_default`).
const MOST_IN_MESSAGE: usize = 64 << 10;

/// Bytes of an order that are read at most: arguments and environment are 6 MiB at most (execve(2)), a page and filters less.
const MOST_OF_ORDER: u64 = 64 << 20;

/// A memory file with these bytes, of any size and nowhere on a disk, that nobody can change.
pub(crate) fn sealed(bytes: &[u8]) -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = File::from(memfd_create("slowpath-launch", flags)?);
    file.write_all_at(bytes, 0)?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS))?;
    Ok(file)
}

/// What such a file holds.
pub(crate) fn unsealed<M: DeserializeOwned>(file: &File) -> io::Result<M> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let seals = SealFlag::from_bits_truncate(fcntl(file, FcntlArg::F_GET_SEALS)?);
    if !seals.contains(SEALS) {
        return Err(wrong("an order that could change while it is read"));
    }
    let length = file.metadata()?.len();
    if length > MOST_OF_ORDER {
        return Err(wrong("an order that is too long"));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    decoded(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_end_message_passes_whole_and_a_closed_end_differs_from_an_empty_one() {
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
        let received = receive::<FromLauncher>(&main).unwrap().unwrap();
        assert_eq!(received.sender.pid, std::process::id() as i32);
        let FromLauncher::Ended(ended) = received.message else { panic!("another message") };
        assert_eq!(ended.stderr_tail, Some(tail));
        drop(launcher);
        // A child of another test has a copy of what was just dropped, until it leaves.
        let began = std::time::Instant::now();
        let closed = loop {
            match receive::<FromLauncher>(&main) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && began.elapsed().as_secs() < 30 => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                other => break other.unwrap(),
            }
        };
        assert!(closed.is_none());
    }

    /// What arrives at the other end when a child that `before` changed sends.
    fn from_a_child<M: Serialize + DeserializeOwned>(
        ends: (&OwnedFd, &OwnedFd),
        message: &M,
        before: impl FnOnce() -> bool,
    ) -> Received<M> {
        use nix::sys::wait::{WaitStatus, waitpid};
        // SAFETY: the child makes system calls, allocates in its own copy, and leaves.
        match unsafe { nix::unistd::fork() }.unwrap() {
            // SAFETY: ends the child at once.
            nix::unistd::ForkResult::Child => unsafe {
                libc::_exit(i32::from(!before() || send(ends.0, message).is_err()))
            },
            nix::unistd::ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
            }
        }
        receive(ends.1).unwrap().unwrap()
    }

    #[test]
    fn an_order_is_taken_from_main_itself_and_from_no_child_of_its() {
        let (main, launcher) = channel().unwrap();
        let own = std::process::id() as i32;
        send(&main, &ToLauncher::<()>::Release).unwrap();
        assert!(receive::<ToLauncher>(&launcher).unwrap().unwrap().sender.is_main(own, false));
        let stranger = from_a_child((&main, &launcher), &ToLauncher::<()>::Release, || true).sender;
        assert!(stranger.pid > 0 && !stranger.is_main(own, false) && !stranger.is_main(own, true), "{stranger:?}");
    }

    #[test]
    fn one_who_is_another_user_already_can_only_say_that_he_waits_or_why_not() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root can become another user");
            return;
        }
        let nobody = slowpath_process::Credentials { uid: 65534, gid: 65534, groups: Vec::new() };
        let (main, launcher) = channel().unwrap();
        let said = |message: FromLauncher| {
            let nobody = nobody.clone();
            let received =
                from_a_child((&launcher, &main), &message, move || slowpath_process::drop_to(&nobody).is_ok());
            assert_eq!(received.sender.uid, 65534);
            received.message.may_come_from(received.sender)
        };
        assert!(said(FromLauncher::Prepared));
        for message in [
            FromLauncher::Released { at: 1 },
            FromLauncher::Ready { at: 1 },
            FromLauncher::Observing { url: None },
            FromLauncher::ObserverDied { how: String::new(), survivors: vec![1] },
        ] {
            assert!(!said(message));
        }
        let own = Sender { pid: 1, uid: 0 };
        assert!(FromLauncher::Ready { at: 1 }.may_come_from(own));
    }

    #[test]
    fn an_order_cannot_be_changed_by_whoever_else_holds_it_and_one_that_could_is_refused() {
        let file = sealed(&encoded(&7u32).unwrap()).unwrap();
        assert_eq!(unsealed::<u32>(&file).unwrap(), 7);
        assert!(file.write_all_at(&[9], 0).is_err() && file.set_len(0).is_err() && file.set_len(99).is_err());
        let open = File::from(memfd_create("test", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        open.write_all_at(&encoded(&7u32).unwrap(), 0).unwrap();
        assert!(unsealed::<u32>(&open).is_err());
        assert!(unsealed::<u32>(&File::open("/dev/null").unwrap()).is_err());
    }

    #[test]
    fn a_message_with_more_than_one_descriptor_is_refused_and_they_are_closed() {
        let (main, launcher) = channel().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let bytes = encoded(&FromLauncher::Ready { at: 1 }).unwrap();
        for count in [1, 2, 7] {
            send_packet_with(&launcher, &bytes, &vec![writer.as_fd(); count], Wait::Forever).unwrap();
        }
        drop(writer);
        let received = receive::<FromLauncher>(&main).unwrap().unwrap();
        assert!(received.file.is_some() && received.sender.pid == std::process::id() as i32);
        for _ in 0..2 {
            assert_eq!(receive::<FromLauncher>(&main).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        drop(received);
        // A child of another test has a copy of what was dropped, until it leaves.
        assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0, "nobody holds a copy");
    }

    #[test]
    fn a_message_longer_than_any_is_refused() {
        let (main, launcher) = channel().unwrap();
        setsockopt(&launcher, sockopt::SndBuf, &(64 << 20)).unwrap();
        let long = FromLauncher::ObserverDied { how: "x".repeat(MOST_BYTES), survivors: Vec::new() };
        // Without privilege the kernel does not take it in the first place.
        if send(&launcher, &long).is_ok() {
            assert!(receive::<FromLauncher>(&main).is_err());
        }
    }
}
