//! First uses of functions, seen from outside by breakpoints that are hit once.
//!
//! A thread of ours traces the target (ptrace(2)): each watched function begins with a breakpoint, which is replaced by what stood there
//! when it is hit. A function that was used costs nothing more, whatever is called a million times. The target is never called into, and
//! nothing is loaded into it.
//!
//! - Files are met when they are mapped: those of the executable at the exec, those that the run-time linker maps until the program's first
//!   instruction at their mmap(2), and those of later (dlopen(3)) when the run-time linker says so (`_dl_debug_state`).
//! - Children, threads and what they execute are followed. A forked child has its parent's breakpoints, those that were hit taken away.
//! - A trap that is not ours goes to the target: programs with a handler for SIGTRAP, or breakpoints of their own, keep both.
//! - All that is traced dies with the tracer (`PTRACE_O_EXITKILL`), for with breakpoints left in it, it would at the first. On ctrl-C, and
//!   when the command ends before its children, every thread is stopped, every byte put back, and all are let go.
//!
//! Not seen: code that a program maps without the run-time linker, generated code, and the kernel's vdso. What a program does with SIGTRAP is
//! kept for it ([`disposition`]).

mod action;
mod breakpoint;
mod collected;
mod disposition;
mod error;
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;
mod maps;
mod memory;
mod program;
mod ptrace;
mod reader;
mod release;
mod rights;
#[cfg(test)]
mod tests;
mod watch;

pub use error::TraceError;
pub use reader::serve;

use crate::trace_file::Trace;
use reader::Reader;
use slowpath_launch::{BoxError, Hooks};
use slowpath_process::ProcessFiles;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use watch::Watch;

/// What a trace is of.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Shared objects too, not executables alone.
    pub all_objects: bool,
}

/// What a trace showed.
#[derive(Debug)]
pub struct Traced {
    /// The trace, without command and date.
    pub trace: Trace,
    /// Processes that were still running and let go.
    pub released: usize,
}

/// The tracer as hooks of a launch, whose target it follows from its first instruction.
pub struct TraceHooks {
    wanted: Wanted,
    reader: Option<UnixStream>,
    asked_to_stop: Box<dyn Fn() -> bool>,
    interrupted: fn() -> bool,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Traced, TraceError>>>,
    refused: Option<TraceError>,
}

impl TraceHooks {
    /// Hooks that trace, with the socket to a reader ([`serve`]). `asked_to_stop`: whether the user wants it to end; `interrupted`: as
    /// [`Hooks::interrupted`].
    pub fn new(
        wanted: Wanted,
        reader: UnixStream,
        asked_to_stop: Box<dyn Fn() -> bool>,
        interrupted: fn() -> bool,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        Self { wanted, reader: Some(reader), asked_to_stop, interrupted, stop, thread: None, refused: None }
    }

    /// Has the trace end: everything is restored and let go.
    fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.as_ref().filter(|thread| !thread.is_finished()) {
            // It may be waiting for the target. Sent again with the next tick, should it come just before it waits.
            // SAFETY: the thread was not joined, so its id is its own.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), WAKING) };
        }
    }

    /// Waits for the end of the trace.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn finish(mut self) -> Result<Traced, TraceError> {
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let thread = self.thread.take().ok_or(TraceError::NotStarted)?;
        thread.join().map_err(|_| TraceError::Crashed)?
    }
}

/// The signal that interrupts the tracer's wait: nobody sends it otherwise, and by default it does nothing.
const WAKING: i32 = libc::SIGURG;

/// Gives [`WAKING`] a handler, without which it interrupts no call.
fn wake_by_signal() -> io::Result<()> {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    extern "C" fn nothing(_: i32) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing.
    unsafe { sigaction(Signal::SIGURG, &action) }?;
    Ok(())
}

impl Hooks for TraceHooks {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        let refuse = |refused: TraceError| -> BoxError { refused.to_string().into() };
        let reader = self.reader.take().map(Reader::new).transpose().map_err(TraceError::Reader).map_err(refuse)?;
        let Some(reader) = reader else { return Err(refuse(TraceError::NotStarted)) };
        wake_by_signal()?;
        // Of this thread: it is no child that the tracer waits for.
        let mut files = ProcessFiles::default();
        files.start()?;
        let (answers, seized) = mpsc::channel();
        let (all_objects, stop) = (self.wanted.all_objects, Arc::clone(&self.stop));
        let thread = std::thread::Builder::new().name("tracer".to_owned()).spawn(move || {
            match Watch::seize(pid, all_objects, reader, files) {
                Ok(watch) => {
                    let _ = answers.send(None);
                    traced(watch, &stop)
                }
                Err(error) => {
                    let _ = answers.send(Some(error.to_string()));
                    Err(error)
                }
            }
        })?;
        match seized.recv() {
            Ok(None) => {
                self.thread = Some(thread);
                Ok(())
            }
            _ => {
                let refused = match thread.join() {
                    Ok(Err(error)) => error,
                    _ => TraceError::Crashed,
                };
                let said = refused.to_string();
                self.refused = Some(refused);
                Err(said.into())
            }
        }
    }

    fn on_tick(&mut self) {
        if (self.asked_to_stop)() {
            self.request_stop();
        }
    }

    fn interrupted(&mut self) -> bool {
        (self.interrupted)()
    }

    fn stop_requested(&self) -> bool {
        // Not before everything is restored.
        self.stop.load(Ordering::Relaxed) && self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for TraceHooks {
    /// A launch that failed: what is traced is let go by the tracer's end, with the target's.
    fn drop(&mut self) {
        self.request_stop();
    }
}

/// Follows the command to its end, or until `stop`, and lets go what still runs then.
fn traced(mut watch: Watch, stop: &AtomicBool) -> Result<Traced, TraceError> {
    let ended = watch.follow(stop)?;
    let released = release::all(watch)?;
    let processes = released.processes;
    Ok(Traced { trace: released.trace(ended)?, released: processes })
}

/// What the tracer reads, for the fuzzers.
pub(crate) fn foreign(bytes: &[u8]) {
    for mapping in maps::code_mappings(bytes) {
        assert!(!mapping.range.is_empty(), "a mapping has a length");
    }
    reader::answers(bytes);
}

/// What the reader reads, for the fuzzers.
pub(crate) fn foreign_elf(bytes: &[u8]) {
    if let Ok((facts, entries, functions)) = reader::facts_of(bytes, true) {
        assert!(entries.iter().all(|entry| (entry.function as usize) < functions.len()), "an entry is of a function");
        assert!(entries.is_sorted_by(|one, other| one.at < other.at) && !facts.code.is_empty(), "entries are sorted");
        let without = reader::facts_of(bytes, false);
        assert!(without.is_ok_and(|(same, ..)| same.settings == facts.settings), "what does not hang on functions");
    }
}
