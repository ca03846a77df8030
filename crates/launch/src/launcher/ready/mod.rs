//! The observation of readiness, except of exits and output lines: every kind offers descriptors to poll and is asked
//! again when one of them, or the attempt timer, says so.

mod attempts;
mod file;
mod notify;
mod page;

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;

use nix::poll::PollFlags;

use crate::{LaunchSpec, ReadyWhen};

/// A ready condition under observation.
pub(super) enum Watch {
    /// `exit` and `line`, which the observer sees by itself.
    Nothing,
    File(file::FileWatch),
    Attempts(attempts::Attempts),
    Notify(notify::NotifySocket),
    Page(page::PageServer),
}

impl Watch {
    /// Begins to watch. `page` is the HTML of `browser`.
    pub(super) fn start(spec: &LaunchSpec, page: Option<&str>) -> io::Result<Watch> {
        Ok(match &spec.ready {
            ReadyWhen::Exit | ReadyWhen::Line(_) => Watch::Nothing,
            ReadyWhen::File(path) => Watch::File(file::FileWatch::start(&spec.cwd.join(path))?),
            ReadyWhen::Tcp { host, port } => Watch::Attempts(attempts::Attempts::tcp(host, *port)?),
            ReadyWhen::Http { host, port, path } => Watch::Attempts(attempts::Attempts::http(host, *port, path)?),
            ReadyWhen::Notify => {
                Watch::Notify(notify::NotifySocket::bind((!spec.pid_namespace).then_some(spec.identity.uid))?)
            }
            ReadyWhen::Browser { .. } => Watch::Page(page::PageServer::bind(page, spec.identity.uid)?),
        })
    }

    /// The page address for the command.
    pub(super) fn url(&self) -> Option<String> {
        match self {
            Watch::Page(server) => Some(server.url()),
            _ => None,
        }
    }

    /// A variable for the target's environment.
    pub(super) fn variable(&self) -> Option<(OsString, OsString)> {
        match self {
            Watch::Notify(socket) => Some(("NOTIFY_SOCKET".into(), socket.name())),
            _ => None,
        }
    }

    /// Whether the attempt timer has to run.
    pub(super) fn needs_attempts(&self) -> bool {
        matches!(self, Watch::Attempts(_))
    }

    /// What to poll.
    pub(super) fn descriptors(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        match self {
            Watch::Nothing => Vec::new(),
            Watch::File(watch) => vec![watch.descriptor()],
            Watch::Attempts(attempts) => attempts.descriptors(),
            Watch::Notify(socket) => vec![socket.descriptor()],
            Watch::Page(server) => server.descriptors(),
        }
    }

    /// Looks, without waiting; `tick` when the attempt timer fired. True: the target is ready.
    pub(super) fn look(&mut self, tick: bool) -> io::Result<bool> {
        match self {
            Watch::Nothing => Ok(false),
            Watch::File(watch) => watch.look(),
            Watch::Attempts(attempts) => Ok(attempts.look(tick)),
            Watch::Notify(socket) => socket.look(),
            Watch::Page(server) => Ok(server.look()),
        }
    }
}

/// What comes through a socket of a target, a request for the page or an answer to an attempt; and the page itself.
pub(super) fn http(bytes: &[u8]) {
    page::path(bytes);
    page::cookies(bytes).count();
    attempts::status(bytes);
    page::with_script(&String::from_utf8_lossy(bytes), "secret");
}
