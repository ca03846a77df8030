//! The process that writes a recording while it is made: forked before anything is recorded, with the user's identity for
//! good. The recorder hands it raw records and never waits for it; what waits is bounded, and what is beyond is counted.
//!
//! It outlives its recorder by the time that it takes to write what it has; it ignores the signals that end a recorder.

pub mod frames;
mod names;
mod process;
pub mod stack_audit;

use crate::failure::{Failure, Kind};
use crate::unprivileged::take_on;
use frames::{ANSWER, Answer, Answers, Begin, HEADER, Kind as Frame, SoFar, header, json};
use names::Names;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use slowpath_capture::{count_events, keep_told_once};
use slowpath_launch::Identity;
use slowpath_recording::Manifest;
use slowpath_tables::{Bytes, Losses};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Records that are held back at a launch take at most this.
const HELD_BYTES: usize = 256 << 20;
/// Records that wait for the writer take at most this.
const QUEUE_BYTES: usize = 512 << 20;
/// Room in the socket: what a loop of 20 ms hands over, also at hundreds of MB a second.
const SOCKET_BYTES: usize = 16 << 20;

/// The writer, seen from the recorder.
pub struct WriterProcess {
    child: Pid,
    is_reaped: bool,
    socket: UnixStream,
    answers: Answers,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first of the queue that are sent.
    sent: usize,
    queued: usize,
    held_until: Option<Instant>,
    given_up: Losses,
    stop: Option<String>,
    done: Option<Result<Manifest, Failure>>,
}

impl WriterProcess {
    /// Forks the writer of a recording in `directory`, which is there and empty. It must be started before anything is
    /// loaded into the kernel, which it would hold.
    ///
    /// # Errors
    /// No process could be started.
    pub fn start(identity: &Identity, directory: &Path, limit: Bytes) -> Result<Self, Failure> {
        let (ours, theirs) = UnixStream::pair().map_err(|error| broken(&error))?;
        if setsockopt(&ours, sockopt::SndBufForce, &SOCKET_BYTES).is_err() {
            // Without privilege the system's own limit holds.
            let _ = setsockopt(&ours, sockopt::SndBuf, &SOCKET_BYTES);
        }
        // The kernel decides at the opening who may read addresses in it. Others than root get names only, from the recorder.
        let kernel = if identity.uid == 0 { std::fs::File::open("/proc/kallsyms").ok() } else { None };
        // SAFETY: this process has one thread (no library used here starts any), so the child may do anything.
        match unsafe { fork() }.map_err(|error| broken(&error))? {
            ForkResult::Child => {
                drop(ours);
                for end in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
                    // SAFETY: ignoring a signal runs no code of ours.
                    let _ = unsafe { signal(end, SigHandler::SigIgn) };
                }
                let worked = catch_unwind(AssertUnwindSafe(|| match take_on(identity) {
                    Ok(()) => process::work(theirs, directory, limit, Names::new(kernel)),
                    Err(error) => {
                        let answer = Answer::Done(Box::new(Err(broken(&error))));
                        let _ = (&theirs).write_all(&json(ANSWER, &answer));
                    }
                }));
                // SAFETY: ends the child without running the parent's destructors.
                unsafe { libc::_exit(i32::from(worked.is_err())) }
            }
            ForkResult::Parent { child } => Ok(Self {
                child,
                is_reaped: false,
                socket: ours,
                answers: Answers::default(),
                queue: VecDeque::new(),
                sent: 0,
                queued: 0,
                held_until: None,
                given_up: Losses::default(),
                stop: None,
                done: None,
            }),
        }
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.as_raw().unsigned_abs()
    }

    /// Has the recording begun, and waits for that. Records are held back in memory for `hold`, so that decoding does not
    /// compete with a launch.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn begin(&mut self, begin: &Begin, hold: Duration) -> Result<(), Failure> {
        self.socket.set_nonblocking(false).map_err(|error| broken(&error))?;
        // An error of the writer is told as the answer.
        let _ = self.socket.write_all(&json(Frame::Begin as u8, begin));
        let answer = self.answer()?;
        self.held_until = Some(Instant::now() + hold);
        self.socket.set_nonblocking(true).map_err(|error| broken(&error))?;
        match answer {
            Answer::Ready => Ok(()),
            Answer::Done(done) => match *done {
                Err(failure) => Err(failure),
                Ok(_) => Err(broken(&"it ended before it began")),
            },
            Answer::Stop(reason) => Err(Failure::new(Kind::Machine, reason)),
        }
    }

    /// Waits for an answer.
    fn answer(&mut self) -> Result<Answer, Failure> {
        let mut bytes = [0; 16 << 10];
        loop {
            if let Some(answer) = self.answers.next() {
                return Ok(answer);
            }
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(self.ended()),
                Ok(length) => self.answers.extend(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(self.ended()),
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// The failure of a writer that ended without a word.
    fn ended(&mut self) -> Failure {
        let status = waitpid(self.child, None);
        self.is_reaped = true;
        let how = status.map_or_else(|error| error.to_string(), |status| format!("{status:?}"));
        Failure::new(Kind::Machine, format!("the process that writes the recording was ended from outside ({how})"))
            .hint("what was written before is whole; `slowpath analyze` reads it")
    }

    /// Takes whole records. Where too much waits already, events are given up and counted; what later records refer to is not.
    pub fn take(&mut self, records: Vec<u8>) {
        if records.is_empty() {
            return;
        }
        if self.has_room(records.len()) {
            self.enqueue_records(records);
        } else {
            let (kept, given_up) = keep_told_once(&records);
            self.give_up(given_up);
            self.enqueue_records(kept);
        }
    }

    fn enqueue_records(&mut self, records: Vec<u8>) {
        match header(Frame::Records as u8, records.len()) {
            Some(header) => {
                self.enqueue(header.to_vec());
                self.enqueue(records);
            }
            None => self.give_up(count_events(&records)),
        }
    }

    fn give_up(&mut self, events: Losses) {
        for (kind, events) in events.0 {
            self.given_up.add(&format!("writer_behind.{kind}"), events);
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.queued + HEADER + bytes <= QUEUE_BYTES
    }

    fn enqueue(&mut self, bytes: Vec<u8>) {
        self.queued += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Tells what holds now, in case there is no end.
    pub fn tell(&mut self, mut facts: SoFar) {
        facts.losses.merge(&self.given_up);
        self.enqueue(json(Frame::SoFar as u8, &facts));
    }

    /// Records are no longer held back, see [`Self::begin`].
    pub fn release(&mut self) {
        self.held_until = None;
    }

    /// Hands over what the writer takes now, and hears what it says; never waits.
    ///
    /// # Errors
    /// The writer is gone.
    pub fn pump(&mut self) -> Result<(), Failure> {
        let is_held = self.held_until.is_some_and(|until| Instant::now() < until) && self.queued < HELD_BYTES;
        if !is_held {
            self.held_until = None;
            self.send()?;
        }
        self.hear()
    }

    /// Sends until the queue is empty or the socket is full.
    fn send(&mut self) -> Result<(), Failure> {
        while let Some(first) = self.queue.front() {
            match self.socket.write(&first[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Its last words may still be there.
                Err(_) => return Ok(()),
            }
            if self.sent == first.len() {
                self.queued -= first.len();
                self.sent = 0;
                self.queue.pop_front();
            }
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<(), Failure> {
        let mut bytes = [0; 4096];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) if self.done.is_some() => return Ok(()),
                Ok(0) => return Err(self.ended()),
                Ok(length) => self.answers.extend(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(self.ended()),
                Err(error) => return Err(broken(&error)),
            }
            while let Some(answer) = self.answers.next() {
                self.note(answer);
            }
        }
    }

    fn note(&mut self, answer: Answer) {
        match answer {
            Answer::Ready => {}
            Answer::Stop(reason) => self.stop = Some(reason),
            Answer::Done(done) => {
                self.stop.get_or_insert_with(|| match &*done {
                    Err(failure) => failure.chain(),
                    Ok(_) => "the writer ended".to_owned(),
                });
                self.done = Some(*done);
            }
        }
    }

    /// Why the writer wants recording to stop, if it does.
    pub fn stop(&self) -> Option<&str> {
        self.stop.as_deref()
    }

    /// Hands over the rest, the last records and the last manifest, and waits until the recording is written. The last records
    /// tell of all that still runs, and are taken however much waits.
    ///
    /// # Errors
    /// Something could not be written, or the writer is gone.
    pub fn finish(mut self, records: Vec<u8>, mut manifest: Manifest) -> Result<Manifest, Failure> {
        self.enqueue_records(records);
        manifest.losses.merge(&self.given_up);
        self.enqueue(json(Frame::End as u8, &manifest));
        self.close()
    }

    /// Has everything removed that was made: there is nothing to record.
    ///
    /// # Errors
    /// It cannot be removed, or the writer is gone.
    pub fn discard(mut self) -> Result<(), Failure> {
        // Behind what waits, of which a part may be sent.
        self.enqueue(json(Frame::Discard as u8, &()));
        self.close().map(drop)
    }

    fn close(&mut self) -> Result<Manifest, Failure> {
        self.socket.set_nonblocking(false).map_err(|error| broken(&error))?;
        if self.done.is_none() {
            self.send()?;
        }
        while self.done.is_none() {
            let answer = self.answer()?;
            self.note(answer);
        }
        if !std::mem::replace(&mut self.is_reaped, true) {
            let _ = waitpid(self.child, None);
        }
        self.done.take().unwrap_or_else(|| Err(broken(&"no result")))
    }
}

impl Drop for WriterProcess {
    fn drop(&mut self) {
        // Only where recording failed: what the writer has it writes, as when the recorder is killed.
        if !self.is_reaped {
            let _ = self.socket.set_nonblocking(false);
            let _ = self.send();
            let _ = self.socket.shutdown(std::net::Shutdown::Write);
            let _ = self.socket.read_to_end(&mut Vec::new());
            let _ = kill(self.child, Signal::SIGKILL);
            let _ = waitpid(self.child, None);
        }
    }
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Machine, format!("the process that writes the recording: {error}"))
}
