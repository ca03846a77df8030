//! The children, seen from the recorder.

use super::child;
use super::wire::{Mapped, Received, Request, Seen, TableAnswer, receive, seen, send};
use crate::failure::{Failure, Kind, failed};
use crate::unprivileged::{Work, Worker};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use slowpath_launch::Identity;
use slowpath_process::{Duty, Wait};
use slowpath_tables::FileKey;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a table may take; that of Chromium takes half a second.
const LIMIT: Duration = Duration::from_secs(60);

/// How long the files of a program are listed: its loader is run for that, which opens them.
const LISTING: Duration = Duration::from_secs(10);

/// Files that a program starts with, at most.
const MOST_FILES: usize = 1024;

/// What a table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The file with this number in frames.
    Module(u32),
    /// A file that has no number yet, and the generation of its inode, where the file system reports it.
    File(FileKey, Option<u32>),
}

/// A child that parses. It knows no more than the file that it is sent: neither whose it is nor what number it has.
pub struct Parser {
    socket: OwnedFd,
    child: Worker<()>,
    /// What it is doing, and since when; one at a time, so that what is small can go before what is large.
    asked: Option<(Asked, Instant)>,
    /// The largest file that it is given.
    pub largest: u64,
    broken: bool,
}

fn pair() -> Result<(OwnedFd, OwnedFd), Failure> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).map_err(failed(Kind::Machine))
}

impl Parser {
    /// Starts it.
    ///
    /// # Errors
    /// No process could be started.
    pub fn start(identity: &Identity, largest: u64) -> Result<Self, Failure> {
        let (socket, other) = pair()?;
        let what = Work::new("making unwinding tables", Duty::Parse).keeping(&other);
        let child = Worker::start(identity, &what, move || {
            child::serve(&other);
            Ok(())
        })?;
        Ok(Self { socket, child, asked: None, largest, broken: false })
    }

    /// Becomes readable when there is an answer.
    pub fn answers(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether it has something to do.
    pub fn is_busy(&self) -> bool {
        self.asked.is_some() || self.broken
    }

    /// Asks for a table.
    ///
    /// # Errors
    /// It has ended.
    pub fn ask(&mut self, asked: Asked, file: &File) -> io::Result<()> {
        let sent = send(&self.socket, &Request, Some(file), Wait::Never);
        match sent {
            Ok(()) => self.asked = Some((asked, Instant::now())),
            Err(_) => self.broken = true,
        }
        sent
    }

    /// Its answer to what it was asked, once there is one. Never waits.
    pub fn answer(&mut self) -> Option<(Asked, TableAnswer, Option<File>)> {
        let (asked, _) = self.asked?;
        match receive(&self.socket, Wait::Never) {
            Received::Message(answer, table) => {
                self.asked = None;
                Some((asked, answer, table))
            }
            Received::Nothing => None,
            Received::End => {
                self.broken = true;
                None
            }
        }
    }

    /// Whether it is to be replaced; with the reason where that costs a table.
    pub fn ended(&mut self) -> Option<Option<String>> {
        let result = self.child.poll();
        let is_late = self.asked.is_some_and(|(_, since)| since.elapsed() >= LIMIT);
        if result.is_none() && !is_late && !self.broken {
            return None;
        }
        let reason = match result {
            Some(Err(failure)) => failure.cause().to_owned(),
            _ if is_late => format!("it was not done within {} s", LIMIT.as_secs()),
            _ => "it did not answer what it was asked".to_owned(),
        };
        Some(self.asked.map(|_| reason))
    }
}

/// The files that `program` maps when it starts, opened by a child as the user, who also runs the program's loader for that. None where that
/// fails or takes too long: they are met when they are mapped.
pub fn startup_files(identity: &Identity, program: &Path) -> Vec<(Seen, Option<u32>, File)> {
    let Ok((socket, other)) = pair() else { return Vec::new() };
    let what = Work::new("listing the files of a program", Duty::Run).keeping(&other).silent();
    let began = Instant::now();
    let listing = Worker::start(identity, &what, move || {
        child::list(&other, program);
        Ok(())
    });
    let Ok(mut listing) = listing else { return Vec::new() };
    let mut files = Vec::new();
    while files.len() < MOST_FILES && began.elapsed() < LISTING && !crate::interrupt::requested() {
        match receive(&socket, Wait::Never) {
            Received::Message(Mapped { generation }, file) => {
                files.extend(file.and_then(|file| Some((seen(&file)?, generation, file))));
            }
            Received::Nothing => {
                // Sees to a child that was stopped, too.
                if let Some(Err(_)) = listing.poll() {
                    break;
                }
                let timeout = PollTimeout::from(50u8);
                let _ = poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], timeout);
            }
            Received::End => break,
        }
    }
    files
}
