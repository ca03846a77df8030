//! The process that writes a recording while it is made: forked before anything is recorded, with the user's identity for
//! good. The recorder hands it raw records and never waits for it; what waits is bounded, and what is beyond is counted.
//!
//! It outlives its recorder by the time that it takes to write what it has; it ignores the signals that end a recorder.

pub mod frames;
mod names;
mod process;
pub mod stack_audit;

use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::unprivileged::Work;
use frames::{Answers, Begin, HEADER, MessageKind, SoFar, WriterAnswer, header, json};
use names::Names;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use slowpath_capture::{count_events, keep_reported_once};
use slowpath_launch::Identity;
use slowpath_process::{Duty, Worker, WorkerError};
use slowpath_recording::Manifest;
use slowpath_tables::{Bytes, Losses};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Records that are held back at a launch take at most this.
const HELD_BYTES: usize = 256 << 20;
/// Records that wait for the writer take at most this.
const QUEUE_BYTES: usize = 512 << 20;
/// Room in the socket: what a loop of 20 ms hands over, also at hundreds of MB a second.
const SOCKET_BYTES: usize = 16 << 20;

/// How long the writer may take to begin: it makes a directory and a file.
const BEGINNING: Duration = Duration::from_secs(60);
/// How long it may take to write what is left and to look up all names, debug information from the network included.
const ENDING: Duration = Duration::from_secs(3600);
/// How long it may take for what it has where recording failed.
const LEAVING: Duration = Duration::from_secs(60);
/// How often it is looked whether the writer was stopped.
const LOOK: Duration = Duration::from_millis(50);

/// The writer, seen from the recorder.
pub struct WriterProcess {
    child: Worker,
    has_ended: bool,
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
        // Only a user who wants debug information from the network gets a writer that may start the client for it.
        let duty = if names::wants_client() { Duty::Run } else { Duty::Write };
        let work = Work::new("writing the recording", duty).silent().keeping(&theirs);
        let work = kernel.iter().fold(work, Work::keeping);
        // Not confined to the directory: perf maps are where their processes see them, which Landlock would not let it look at.
        let child = Worker::start(&work.sandbox(identity).outliving(), work.kept(), || {
            process::work(theirs, directory, limit, Names::new(kernel));
            Vec::new()
        });
        ours.set_nonblocking(true).map_err(|error| broken(&error))?;
        Ok(Self {
            child: child.map_err(|error| broken(&error))?,
            has_ended: false,
            socket: ours,
            answers: Answers::default(),
            queue: VecDeque::new(),
            sent: 0,
            queued: 0,
            held_until: None,
            given_up: Losses::default(),
            stop: None,
            done: None,
        })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Has the recording begun, and waits for that. Records are held back in memory for `hold`, so that decoding does not
    /// compete with a launch.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn begin(&mut self, begin: &Begin, hold: Duration) -> Result<(), Failure> {
        self.enqueue(json(MessageKind::Begin as u8, begin));
        let answer = self.answer(BEGINNING)?;
        self.held_until = Some(Instant::now() + hold);
        match answer {
            WriterAnswer::Ready => Ok(()),
            WriterAnswer::Done(done) => match *done {
                Err(failure) => Err(failure),
                Ok(_) => Err(broken(&"it ended before it began")),
            },
            WriterAnswer::Stop(reason) => Err(Failure::new(Kind::Machine, reason)),
        }
    }

    /// Hands over what waits until there is an answer, for so long at most. A writer that somebody stops is continued, once.
    fn answer(&mut self, limit: Duration) -> Result<WriterAnswer, Failure> {
        let mut bytes = [0; 16 << 10];
        let began = Instant::now();
        loop {
            if let Some(answer) = self.answers.next_answer().map_err(|error| self.given_up_for(&error))? {
                return Ok(answer);
            }
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(self.ended()),
                Ok(length) => self.answers.extend(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if began.elapsed() >= limit {
                        return Err(self.given_up_for(&WorkerError::Late(limit)));
                    }
                    self.child.attend().map_err(|error| self.given_up_for(&error))?;
                    self.send()?;
                    self.wait();
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(self.ended()),
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// Waits a moment for the other side.
    fn wait(&self) {
        let wanted = if self.queue.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLIN | PollFlags::POLLOUT };
        let timeout = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX);
        // A signal ends the wait early, which is no matter.
        let _ = poll(&mut [PollFd::new(self.socket.as_fd(), wanted)], timeout);
    }

    /// The failure of a writer that ended without a word.
    fn ended(&mut self) -> Failure {
        self.has_ended = true;
        let began = Instant::now();
        let how = loop {
            match self.child.poll() {
                Some(Err(error)) => break Failure::from_error(Kind::Machine, &error).chain(),
                Some(Ok(_)) => break "it ended before its work did".to_owned(),
                None if began.elapsed() >= LEAVING => break "it does not answer".to_owned(),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        Failure::new(Kind::Machine, format!("the process that writes the recording was ended from outside ({how})"))
            .hint("what was written before is intact; `slowpath analyze` reads it")
    }

    /// Ends a writer that does not do what it should.
    fn given_up_for(&mut self, error: &(dyn std::error::Error + 'static)) -> Failure {
        self.end_it();
        broken(&Failure::from_error(Kind::Machine, error).chain())
            .hint("what was written before is intact; `slowpath analyze` reads it")
    }

    fn end_it(&mut self) {
        self.has_ended = true;
        self.child.kill();
    }

    /// Takes whole records. Where too much waits already, events are given up and counted; what later records refer to is not.
    pub fn take(&mut self, records: Vec<u8>) {
        if records.is_empty() {
            return;
        }
        if self.has_room(records.len()) {
            self.enqueue_records(records);
        } else {
            let (kept, given_up) = keep_reported_once(&records);
            self.give_up(given_up);
            self.enqueue_records(kept);
        }
    }

    fn enqueue_records(&mut self, records: Vec<u8>) {
        match header(MessageKind::Records as u8, records.len()) {
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

    /// Hands over what holds now, in case there is no end.
    pub fn so_far(&mut self, mut facts: SoFar) {
        facts.losses.merge(&self.given_up);
        self.enqueue(json(MessageKind::SoFar as u8, &facts));
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
        self.child.attend().map_err(|error| self.given_up_for(&error))?;
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
            while let Some(answer) = self.answers.next_answer().map_err(|error| self.given_up_for(&error))? {
                self.note(answer);
            }
        }
    }

    fn note(&mut self, answer: WriterAnswer) {
        match answer {
            WriterAnswer::Ready => {}
            WriterAnswer::Stop(reason) => self.stop = Some(reason),
            WriterAnswer::Done(done) => {
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
        self.enqueue(json(MessageKind::End as u8, &manifest));
        self.close()
    }

    /// Has everything removed that was made: there is nothing to record.
    ///
    /// # Errors
    /// It cannot be removed, or the writer is gone.
    pub fn discard(mut self) -> Result<(), Failure> {
        // Behind what waits, of which a part may be sent.
        self.enqueue(json(MessageKind::Discard as u8, &()));
        self.close().map(drop)
    }

    fn close(&mut self) -> Result<Manifest, Failure> {
        while self.done.is_none() {
            let answer = self.answer(ENDING)?;
            self.note(answer);
        }
        // It has nothing more to do but to end.
        self.has_ended = true;
        let began = Instant::now();
        while self.child.poll().is_none() && began.elapsed() < LEAVING {
            std::thread::sleep(Duration::from_micros(200));
        }
        self.done.take().unwrap_or_else(|| Err(broken(&"no result")))
    }
}

impl Drop for WriterProcess {
    fn drop(&mut self) {
        // Only where recording failed: what the writer has it writes, as when the recorder is killed.
        if self.has_ended {
            return;
        }
        let began = Instant::now();
        let mut is_sent = false;
        while self.child.poll().is_none() && began.elapsed() < LEAVING && !interrupt::requested() {
            is_sent = is_sent || (self.send().is_ok() && self.queue.is_empty());
            if is_sent {
                let _ = self.socket.shutdown(std::net::Shutdown::Write);
            }
            // What it says now nobody needs, but it must not wait for a reader.
            while self.socket.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {}
            std::thread::sleep(Duration::from_millis(1));
        }
        self.end_it();
    }
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Machine, format!("the process that writes the recording: {error}"))
}
