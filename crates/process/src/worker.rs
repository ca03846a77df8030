//! A piece of work in a sandboxed process of its own, and its result as bytes.
//!
//! The result is foreign: it has a limit, and whoever may signal the worker (the same user) can only make the work fail. A worker that was
//! stopped is continued once and then ended. A worker that panics runs destructors of its own frames alone; it never returns into the
//! frames of its parent, of which it has a copy.

use crate::sandbox::Sandbox;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, pipe2};
use std::any::Any;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The largest result, in bytes: many times what is known, and what its receiver makes of it takes some hundred MB at worst.
pub const MOST_BYTES: usize = 64 << 20;

/// How often it is looked whether the worker was stopped, and whether its result is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// How long a worker that was asked to end may take until it is left to its fate: one that hangs in a file system cannot be waited for.
const END: Duration = Duration::from_secs(2);

/// How long a stopped worker is left alone: long enough for who stops it to look at it.
const STOPPED: Duration = Duration::from_secs(1);

/// First byte of an answer.
const DONE: u8 = 0;
const PANICKED: u8 = 1;
const NOT_CONFINED: u8 = 2;

/// Why a worker has no result.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It could not be started.
    #[error("no process could be started: {call}")]
    Start {
        /// What failed.
        call: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It could not be reduced to what it may do, and did nothing.
    #[error("its process could not give up its privilege: {0}")]
    NotConfined(String),
    /// It panicked.
    #[error("it crashed: {0}")]
    Crashed(String),
    /// A signal ended it.
    #[error("it was ended by signal {0}{hint}", hint = hint(*.0))]
    Killed(i32),
    /// It was stopped, and again after it had been continued.
    #[error("it was stopped by signal {0}, and ended therefore")]
    Stopped(i32),
    /// It ended without an answer.
    #[error("it ended with code {0} and without a result")]
    NoResult(i32),
    /// Its answer exceeds [`MOST_BYTES`].
    #[error("its result is larger than {MOST_BYTES} bytes")]
    TooLarge,
    /// Nobody wants the result any more.
    #[error("it was given up")]
    GivenUp,
    /// It took too long.
    #[error("it was not done within {} s", .0.as_secs())]
    Late(Duration),
    /// Its answer cannot be read.
    #[error("its result cannot be read")]
    Unreadable(#[source] io::Error),
}

fn hint(signal: i32) -> &'static str {
    match signal {
        libc::SIGSYS => ": it made a system call that is none of its business",
        libc::SIGABRT => ": it aborted, as it does without memory (its share is half of the machine's)",
        libc::SIGBUS => ": a file that it read was cut meanwhile",
        _ => "",
    }
}

/// A worker that is under way. Dropped, it is ended, unless it outlives its parent.
#[derive(Debug)]
pub struct Worker {
    child: Pid,
    is_reaped: bool,
    ends_with_parent: bool,
    reader: File,
    bytes: Vec<u8>,
    stopped: Option<(Instant, i32)>,
    was_continued: bool,
    /// How it ended, where that is known before its answer was read.
    status: Option<WaitStatus>,
}

impl Worker {
    /// Begins `work` in a sandbox. It has the standard streams, `kept`, and what it opens itself.
    ///
    /// # Errors
    /// No process could be started. That it could not be confined is reported as its result.
    pub fn start(sandbox: &Sandbox, kept: &[RawFd], work: impl FnOnce() -> Vec<u8>) -> Result<Self, WorkerError> {
        let failed = |call| move |errno: Errno| WorkerError::Start { call, source: errno.into() };
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC).map_err(failed("pipe2"))?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(failed("fcntl"))?;
        let parent = getpid();
        // SAFETY: the child runs this thread alone. It allocates, which glibc permits after a fork of several threads too; it takes no
        // other lock that one of the parent's threads may hold, for those only fill maps of the kernel. It ends with `_exit` below.
        match unsafe { fork() }.map_err(failed("fork"))? {
            ForkResult::Child => {
                drop(reader);
                let kept: Vec<RawFd> = kept.iter().copied().chain([writer.as_raw_fd()]).collect();
                let answered = answer(sandbox, parent, &kept, work, File::from(writer));
                // SAFETY: ends the child; no destructor of the parent's frames runs in it.
                unsafe { libc::_exit(i32::from(!answered)) }
            }
            ForkResult::Parent { child } => Ok(Self {
                child,
                is_reaped: false,
                ends_with_parent: sandbox.ends_with_parent(),
                reader: File::from(reader),
                bytes: Vec::new(),
                stopped: None,
                was_continued: false,
                status: None,
            }),
        }
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.as_raw().unsigned_abs()
    }

    /// The result, once there is one; never waits for it. To be asked until there is one: this is also where a worker that was stopped is
    /// continued or ended.
    pub fn poll(&mut self) -> Option<Result<Vec<u8>, WorkerError>> {
        if let Err(error) = self.attend() {
            return Some(Err(error));
        }
        // One more than there may be shows what is too large.
        let room = (MOST_BYTES + 2).saturating_sub(self.bytes.len()) as u64;
        match (&self.reader).take(room).read_to_end(&mut self.bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => Some(Err(self.ended_by(WorkerError::Unreadable(error)))),
            Ok(_) if self.bytes.len() > MOST_BYTES + 1 => Some(Err(self.ended_by(WorkerError::TooLarge))),
            Ok(_) => Some(self.finished()),
        }
    }

    /// Waits for the result, for so long at most, and as long as `is_wanted`.
    ///
    /// # Errors
    /// It has none.
    pub fn wait(mut self, limit: Duration, is_wanted: impl Fn() -> bool) -> Result<Vec<u8>, WorkerError> {
        let began = Instant::now();
        loop {
            if let Some(result) = self.poll() {
                return result;
            }
            if !is_wanted() {
                return Err(self.ended_by(WorkerError::GivenUp));
            }
            if began.elapsed() >= limit {
                return Err(self.ended_by(WorkerError::Late(limit)));
            }
            // A signal ends the wait early, which is no matter.
            let timeout = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX);
            let _ = poll(&mut [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)], timeout);
        }
    }

    /// Sees whether it was stopped: continues it once, then ends it. To be called now and then by who talks to it in another way.
    ///
    /// # Errors
    /// It was stopped again, and is ended.
    pub fn attend(&mut self) -> Result<(), WorkerError> {
        if self.is_reaped || self.status.is_some() {
            return Ok(());
        }
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
        match waitpid(self.child, Some(flags)) {
            Ok(WaitStatus::Stopped(_, signal)) => {
                self.stopped = Some((Instant::now(), signal as i32));
                if self.was_continued {
                    return Err(self.ended_by(WorkerError::Stopped(signal as i32)));
                }
            }
            Ok(WaitStatus::Continued(_)) => self.stopped = None,
            Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => {
                self.is_reaped = true;
                self.status = Some(status);
                // Its pid may be another's from now on: it is not continued.
                self.stopped = None;
            }
            _ => {}
        }
        if self.stopped.is_some_and(|(since, _)| since.elapsed() >= STOPPED) {
            self.was_continued = true;
            self.stopped = None;
            let _ = kill(self.child, Signal::SIGCONT);
        }
        Ok(())
    }

    /// Ends it, for this reason.
    fn ended_by(&mut self, error: WorkerError) -> WorkerError {
        self.kill();
        error
    }

    /// The answer is whole: the other end is closed.
    fn finished(&mut self) -> Result<Vec<u8>, WorkerError> {
        let mut bytes = std::mem::take(&mut self.bytes);
        match bytes.first().copied() {
            Some(kind @ (DONE | PANICKED | NOT_CONFINED)) => {
                // It has nothing more to do.
                self.kill();
                bytes.remove(0);
                let text = || String::from_utf8_lossy(&bytes).into_owned();
                match kind {
                    DONE => Ok(bytes),
                    PANICKED => Err(WorkerError::Crashed(text())),
                    _ => Err(WorkerError::NotConfined(text())),
                }
            }
            _ => Err(self.without_answer()),
        }
    }

    fn without_answer(&mut self) -> WorkerError {
        self.reap(END);
        match self.status {
            Some(WaitStatus::Signaled(_, signal, _)) => WorkerError::Killed(signal as i32),
            Some(WaitStatus::Exited(_, code)) => WorkerError::NoResult(code),
            // It has closed its end and lives on.
            _ => self.ended_by(WorkerError::NoResult(0)),
        }
    }

    /// Ends it.
    pub fn kill(&mut self) {
        if !self.is_reaped {
            let _ = kill(self.child, Signal::SIGKILL);
            self.reap(END);
        }
    }

    /// Waits for its end, not for ever.
    fn reap(&mut self, limit: Duration) {
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        while !self.is_reaped {
            match waitpid(self.child, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) if began.elapsed() >= limit => return,
                Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LOOK);
                }
                Ok(status) => {
                    self.status = Some(status);
                    self.is_reaped = true;
                }
                Err(_) => self.is_reaped = true,
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.ends_with_parent {
            self.kill();
        }
    }
}

/// What the last thread that panicked said, where the program has asked for it ([`remember_panics`]).
static LAST_WORDS: Mutex<String> = Mutex::new(String::new());

/// Whether this process is a worker.
static IS_WORKER: AtomicBool = AtomicBool::new(false);

/// Has workers say where they panicked instead of printing it. To be called once, when the program starts and has one thread: a worker
/// itself must not change the hook, whose lock another thread of its parent may have held when it was forked.
pub fn remember_panics() {
    let other = take_hook();
    set_hook(Box::new(move |panic| if IS_WORKER.load(Ordering::Relaxed) { remember(panic) } else { other(panic) }));
}

fn remember(panic: &PanicHookInfo<'_>) {
    let text = text(panic.payload());
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
    if let Ok(mut words) = LAST_WORDS.lock() {
        *words = format!("{text}{place}");
    }
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given")
}

/// The whole life of the child. False when nobody reads the answer.
fn answer(sandbox: &Sandbox, parent: Pid, kept: &[RawFd], work: impl FnOnce() -> Vec<u8>, mut out: File) -> bool {
    IS_WORKER.store(true, Ordering::Relaxed);
    let worked = catch_unwind(AssertUnwindSafe(|| match sandbox.enter(parent, kept) {
        Ok(()) => (DONE, work()),
        Err(error) => (NOT_CONFINED, chain(&error).into_bytes()),
    }));
    let (kind, bytes) = worked.unwrap_or_else(|payload| {
        let words = LAST_WORDS.lock().map(|words| words.clone()).unwrap_or_default();
        let words = if words.is_empty() { text(&*payload).to_owned() } else { words };
        // Dropping it could panic again.
        std::mem::forget(payload);
        (PANICKED, words.into_bytes())
    });
    out.write_all(&[kind]).and_then(|()| out.write_all(&bytes)).is_ok()
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
