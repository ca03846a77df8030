//! Asking a zygote for a child.

use crate::listener::connected;
use crate::message::{Ending, FromClient, MOST_BYTES, Refusal, SpawnRequest, Status, Step, ToClient, decoded, encoded};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use slowpath_process::{Packet, Peer, receive_packet, send_packet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a zygote may take to make a child: a fork of a parent with many GiB takes some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no child.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Nobody listens, or nobody accepts connections (`TimedOut`).
    #[error("no zygote answers at {}", socket.display())]
    NoZygote {
        /// Where.
        socket: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody else listens there, who would get what is handed over.
    #[error("user {uid} listens at {}, not user {own} and not root: nothing was handed over", socket.display())]
    Stranger {
        /// Where.
        socket: PathBuf,
        /// Whose it is.
        uid: u32,
        /// Who asks.
        own: u32,
    },
    /// The zygote refuses.
    #[error("the zygote refuses")]
    Refused(#[source] Refusal),
    /// A step of making the child failed.
    #[error("cannot create the child: {} failed ({})", step.name(), reason(*errno))]
    Failed {
        /// The step.
        step: Step,
        /// The error of the system call; 0 where the kernel showed something else than what was asked for.
        errno: i32,
    },
    /// The zygote ended, or closed the connection.
    #[error("the zygote closed the connection before it answered")]
    Gone,
    /// It did not answer in time.
    #[error("the zygote did not answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The connection failed, or what came is no answer.
    #[error("the zygote's answer cannot be read")]
    Answer(#[source] io::Error),
}

fn reason(errno: i32) -> String {
    match errno {
        0 => "the kernel does not show what was asked for".to_owned(),
        errno => Errno::from_raw(errno).desc().to_owned(),
    }
}

/// How often it is looked whether the end of a child is wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A connection to a zygote.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
}

/// A child that began its work. Dropped, it is ended.
#[derive(Debug)]
pub struct Spawned {
    connection: Client,
    /// Its process id in the zygote's pid namespace.
    pub pid: i32,
    /// It was a spare.
    pub from_spare: bool,
    /// Its pidfd (pidfd_open(2)), where the zygote could give one.
    pub pidfd: Option<OwnedFd>,
}

impl Client {
    /// Connects to a zygote of root's or of this process's own user: who listens there gets descriptors and variables.
    ///
    /// # Errors
    /// [`SpawnError::NoZygote`], [`SpawnError::Stranger`].
    pub fn connect(socket: &Path) -> Result<Self, SpawnError> {
        Self::connect_to(socket, None)
    }

    /// The same, or to one of this user.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to(socket: &Path, user: Option<u32>) -> Result<Self, SpawnError> {
        let client = Self::connect_to_anybody(socket)?;
        // Who called listen(2), as the kernel knew it then: nothing of it is the listener's word.
        let peer = Peer::of(&client.socket);
        let uid = peer.map_err(|source| SpawnError::NoZygote { socket: socket.to_owned(), source })?.uid;
        let own = nix::unistd::geteuid().as_raw();
        match uid == 0 || uid == own || Some(uid) == user {
            true => Ok(client),
            false => Err(SpawnError::Stranger { socket: socket.to_owned(), uid, own }),
        }
    }

    /// The same, whoever listens: for a client that hands nothing over.
    ///
    /// # Errors
    /// [`SpawnError::NoZygote`].
    pub fn connect_to_anybody(socket: &Path) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError::NoZygote { socket: socket.to_owned(), source };
        Ok(Self { socket: connected(socket).map_err(failed)? })
    }

    fn say(&self, message: &FromClient, descriptors: &[BorrowedFd<'_>]) -> Result<(), SpawnError> {
        let bytes = encoded(message).map_err(SpawnError::Refused)?;
        match send_packet(&self.socket, &bytes, descriptors) {
            // It has closed its end already, and what it said before can be read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            said => said.map_err(SpawnError::Answer),
        }
    }

    /// The next answer, within a time; none: whenever it comes.
    fn hear(&self, limit: Option<Duration>) -> Result<(ToClient, Option<OwnedFd>), SpawnError> {
        let until = limit.map(|limit| Instant::now() + limit);
        loop {
            match receive_packet(&self.socket, MOST_BYTES) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(SpawnError::Answer(error)),
                Ok(None) => return Err(SpawnError::Gone),
                Ok(Some(Packet { bytes, mut descriptors, .. })) => {
                    let message = decoded(&bytes).map_err(|refusal| SpawnError::Answer(io::Error::other(refusal)))?;
                    return Ok((message, descriptors.pop()));
                }
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if let (Some(left), Some(limit)) = (left, limit)
                && left.is_zero()
            {
                return Err(SpawnError::Late(limit));
            }
            let timeout =
                left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
            match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(SpawnError::Answer(errno.into())),
            }
        }
    }

    /// Asks for a child, and waits until it begins its work. `descriptors` belong to the numbers of [`SpawnRequest::descriptors`].
    ///
    /// # Errors
    /// [`SpawnError`]: there is no child then.
    pub fn spawn(self, request: SpawnRequest, descriptors: &[BorrowedFd<'_>]) -> Result<Spawned, SpawnError> {
        request.check().map_err(SpawnError::Refused)?;
        self.say(&FromClient::Spawn(Box::new(request)), descriptors)?;
        match self.hear(Some(PATIENCE))? {
            (ToClient::Started { pid, from_spare }, pidfd) => Ok(Spawned { connection: self, pid, from_spare, pidfd }),
            (other, _) => Err(unexpected(other)),
        }
    }

    /// Keeps the zygote alive, also without children, as long as this connection; and says how it is.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn hold(&self) -> Result<Status, SpawnError> {
        self.asked(&FromClient::Hold)
    }

    /// How the zygote is.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn status(&self) -> Result<Status, SpawnError> {
        self.asked(&FromClient::Status)
    }

    fn asked(&self, what: &FromClient) -> Result<Status, SpawnError> {
        self.say(what, &[])?;
        match self.hear(Some(PATIENCE))? {
            (ToClient::Status(status), _) => Ok(status),
            (other, _) => Err(unexpected(other)),
        }
    }
}

fn unexpected(answer: ToClient) -> SpawnError {
    match answer {
        ToClient::Refused(refusal) => SpawnError::Refused(refusal),
        ToClient::Failed { step, errno } => SpawnError::Failed { step, errno },
        other => SpawnError::Answer(io::Error::other(format!("an answer to something else: {other:?}"))),
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Spawned {
    /// Waits until the child ends.
    ///
    /// # Errors
    /// [`SpawnError::Gone`]: the zygote ended, and the child with it.
    pub fn wait(&self) -> Result<Ending, SpawnError> {
        self.heard(None)
    }

    /// How the child ended, if it does within this time.
    ///
    /// # Errors
    /// [`SpawnError::Late`] where it lives on; [`SpawnError::Gone`].
    pub fn wait_for(&self, limit: Duration) -> Result<Ending, SpawnError> {
        self.heard(Some(limit))
    }

    /// Waits until the child ends, and sends it SIGTERM once where its end `is_wanted`.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_or_end(&self, is_wanted: &dyn Fn() -> bool) -> Result<Ending, SpawnError> {
        loop {
            match self.wait_for(LOOK) {
                Err(SpawnError::Late(_)) if is_wanted() => break,
                Err(SpawnError::Late(_)) => {}
                waited => return waited,
            }
        }
        self.signal(libc::SIGTERM)?;
        self.wait()
    }

    fn heard(&self, limit: Option<Duration>) -> Result<Ending, SpawnError> {
        match self.connection.hear(limit)? {
            (ToClient::Ended(ending), _) => Ok(ending),
            (other, _) => Err(unexpected(other)),
        }
    }

    /// Has the zygote send it a signal; the zygote may do that also where this process may not.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn signal(&self, signal: i32) -> Result<(), SpawnError> {
        self.connection.say(&FromClient::Signal(signal), &[])
    }
}

impl AsFd for Spawned {
    /// Readable when the child has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.socket.as_fd()
    }
}
