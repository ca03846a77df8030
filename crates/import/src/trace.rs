//! What importers hand over: threads, files, call stacks and waits that they see, and rows. It writes what is new about them first.
//! [`finish`] writes the rest.

mod finish;

use crate::facts::Facts;
use crate::files::Files;
use crate::output::{Output, Row};
use crate::problem::ImportError;
use crate::stacks::{CodePlace, Stacks};
use crate::tasks::{Tasks, Thread};
use crate::waits::{Waits, Waker};
use slowpath_recording::Clock;
use slowpath_tables::{Exec, FileKey, Fork, Nanos, OffCpuReason};

/// Where times begin in a recording of a trace whose clock is the time of day: an hour before its first event, because other files of
/// the trace may begin earlier.
const BEGIN_OF_DAY_CLOCK: u64 = 3_600_000_000_000;

/// What perf calls the kernel where it says its build id.
pub const KERNEL: &str = "[kernel.kallsyms]";

/// A trace that becomes a recording.
pub struct Trace<'a> {
    out: &'a mut dyn Output,
    rows: Vec<Row>,
    tasks: Tasks,
    files: Files,
    stacks: Stacks,
    waits: Waits,
    /// Time of day at which the recording's clock is 0, for clocks that are the time of day.
    day: Option<u64>,
    /// One of the kernel's symbols and its address, where the trace has it.
    kernel_symbol: Option<(String, u64)>,
    /// Whether no frame of the trace has a name, and what helps besides the files.
    has_no_names: Option<&'static str>,
    /// What is known of it as a whole.
    pub facts: Facts,
}

impl<'a> Trace<'a> {
    /// One whose rows go to `out`.
    pub fn new(out: &'a mut dyn Output) -> Self {
        Self {
            out,
            rows: Vec::new(),
            tasks: Tasks::default(),
            files: Files::default(),
            stacks: Stacks::default(),
            waits: Waits::default(),
            day: None,
            kernel_symbol: None,
            has_no_names: None,
            facts: Facts::default(),
        }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn row(&mut self, row: impl Into<Row>) -> Result<(), ImportError> {
        let row = row.into();
        if let Row::CpuSample(sample) = &row
            && let Some(stack) = sample.stack
        {
            self.stacks.sampled(stack);
        }
        Ok(self.out.row(row)?)
    }

    fn pending(&mut self) -> Result<(), ImportError> {
        for row in self.rows.drain(..) {
            self.out.row(row)?;
        }
        Ok(())
    }

    /// The recording's time for a time of day, in ns since 1970: numbers that stay small enough for every reader.
    pub fn from_time_of_day(&mut self, time: Nanos) -> Nanos {
        let day = match self.day {
            Some(day) => day,
            None => {
                let day = time.0.saturating_sub(BEGIN_OF_DAY_CLOCK);
                let realtime = i64::try_from(day).unwrap_or(i64::MAX);
                self.facts.clock = Some(Clock { monotonic: Nanos(0), realtime });
                *self.day.insert(day)
            }
        };
        Nanos(time.0.saturating_sub(day))
    }

    /// Whether the thread was seen before.
    pub fn knows(&self, tid: u32) -> bool {
        self.tasks.knows(tid)
    }

    /// A thread that has an event now; its process where the trace says it, and its name.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn thread(&mut self, ts: Nanos, tid: u32, pid: Option<u32>, name: Option<&str>) -> Result<Thread, ImportError> {
        self.facts.see_time(ts);
        let seen = self.tasks.see(ts, tid, pid, name);
        if let Some(name) = name.filter(|_| seen.is_renamed) {
            self.program(ts, seen.thread, name, "", (FileKey::default(), true))?;
        }
        Ok(seen.thread)
    }

    /// A thread is one of this process, and may have had no event yet.
    pub fn belongs(&mut self, tid: u32, pid: u32) {
        self.tasks.belongs(tid, pid);
    }

    /// A thread, or a process where it is its own, that another one made now.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn fork(&mut self, ts: Nanos, parent: Thread, tid: u32, pid: u32) -> Result<(), ImportError> {
        if !self.tasks.make(ts, tid, pid) {
            return Ok(());
        }
        self.facts.see_probe("process");
        let process = self.tasks.see(ts, tid, Some(pid), None).thread.process;
        self.row(Fork {
            ts,
            parent_pid: parent.process.pid,
            parent_start: parent.process.start,
            pid,
            start: process.start,
            tid,
            thread: tid != pid,
        })
    }

    /// A program that a process runs from now on.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn exec(&mut self, ts: Nanos, thread: Thread, filename: &str, command_line: &str) -> Result<(), ImportError> {
        self.facts.see_probe("process");
        self.tasks.runs(thread.process.pid, filename);
        let file = if filename.is_empty() { FileKey::default() } else { self.file(filename)? };
        self.program(ts, thread, filename, command_line, (file, false))
    }

    fn program(
        &mut self,
        ts: Nanos,
        thread: Thread,
        filename: &str,
        command_line: &str,
        (file, present): (FileKey, bool),
    ) -> Result<(), ImportError> {
        self.row(Exec {
            ts,
            present,
            pid: thread.process.pid,
            start: thread.process.start,
            parent_pid: 0,
            uid: 0,
            gid: 0,
            filename: filename.to_owned(),
            command_line: command_line.to_owned(),
            dev: file.dev,
            ino: file.ino,
            min_flt: 0,
            maj_flt: 0,
            run_time: None,
        })
    }

    /// A thread ended.
    pub fn end(&mut self, ts: Nanos, tid: u32) {
        self.facts.see_time(ts);
        self.tasks.end(tid);
        self.waits.end(tid);
    }

    /// The file at this path.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn file(&mut self, path: &str) -> Result<FileKey, ImportError> {
        let (key, row) = self.files.at(path);
        match row {
            Some(row) => self.row(row).map(|()| key),
            None => Ok(key),
        }
    }

    /// The file at this path, whose device and inode the trace knows.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn identify(&mut self, path: &str, key: FileKey) -> Result<FileKey, ImportError> {
        if let Some(row) = self.files.identify(path, key) {
            self.row(row)?;
        }
        self.file(path)
    }

    /// The file that is at this path and has this build id, in hexadecimal.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn file_with_build_id(&mut self, path: &str, build_id: &str) -> Result<FileKey, ImportError> {
        let (key, row) = self.files.with_build_id(path, build_id);
        match row {
            Some(row) => self.row(row).map(|()| key),
            None => Ok(key),
        }
    }

    /// The file at this path has this build id, in hexadecimal. Only what is known before the file's first row is in it.
    pub fn built(&mut self, path: &str, build_id: String) {
        self.files.built(path, build_id);
    }

    /// The kernel had this symbol at this address; what is said first holds.
    pub fn kernel_symbol(&mut self, symbol: &str, address: u64) {
        self.kernel_symbol.get_or_insert_with(|| (symbol.to_owned(), address));
    }

    /// Traces of this form hold addresses and no names. This helps where the files of this machine have none.
    pub fn has_no_names(&mut self, remedy: &'static str) {
        self.has_no_names = Some(remedy);
    }

    /// The call stack of these frames, the innermost first.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn stack(&mut self, frames: &[(CodePlace, Option<&str>)]) -> Result<Option<u32>, ImportError> {
        let stack = self.stacks.stack(frames, &mut self.rows);
        self.pending()?;
        Ok(stack)
    }

    /// A thread left its CPU.
    pub fn leave(&mut self, ts: Nanos, thread: Thread, reason: OffCpuReason, stack: Option<u32>) {
        self.facts.see_wait(reason);
        self.waits.leave(ts, thread, reason, stack);
    }

    /// A thread was woken.
    pub fn wake(&mut self, ts: Nanos, tid: u32, waker: Waker) {
        self.facts.see_time(ts);
        self.facts.see_wake_up();
        self.waits.wake(ts, tid, waker);
    }

    /// A thread waits for this, where the trace did not show it when it left its CPU.
    pub fn because(&mut self, tid: u32, reason: OffCpuReason) {
        self.waits.because(tid, reason);
    }

    /// A thread runs again.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn enter(&mut self, ts: Nanos, tid: u32) -> Result<(), ImportError> {
        self.facts.see_time(ts);
        match self.waits.enter(ts, tid) {
            Some(row) => self.row(row),
            None => Ok(()),
        }
    }
}
