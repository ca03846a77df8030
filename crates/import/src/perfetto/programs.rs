//! The programs that processes of a Perfetto trace run, as its process trees name them.

use super::messages::text;
use crate::problem::ImportError;
use crate::trace::Trace;
use slowpath_tables::Nanos;

/// Programs that are known before the first event, and bytes of their names.
const MOST_EARLY: usize = 1 << 16;
const MOST_EARLY_BYTES: usize = 32 << 20;
/// Bytes that an event without names takes while it is held back.
const EVENT_BYTES: usize = 128;

/// The program of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pid: u32,
    file: String,
    command_line: String,
}

impl Program {
    /// The one with these words; none where there are none.
    pub fn of(pid: u32, words: &[Vec<u8>]) -> Option<Self> {
        let words: Vec<String> = words.iter().map(|word| text(word)).collect();
        let file = words.first()?.clone();
        Some(Self { pid, file, command_line: words.join(" ") })
    }

    fn bytes(&self) -> usize {
        self.file.len() + self.command_line.len()
    }

    /// As how many events it counts while it is held back.
    pub fn weight(&self) -> usize {
        1 + self.bytes() / EVENT_BYTES
    }

    /// Writes that its process runs it.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn write(&self, trace: &mut Trace<'_>, ts: Nanos) -> Result<(), ImportError> {
        let thread = trace.thread(ts, self.pid, Some(self.pid), None)?;
        trace.exec(ts, thread, &self.file, &self.command_line)
    }
}

/// Programs that are known before the first event.
#[derive(Debug, Default)]
pub struct Early {
    programs: Vec<Program>,
    bytes: usize,
}

impl Early {
    /// Keeps a program until the first event, while there is room.
    pub fn keep(&mut self, program: Program) {
        let bytes = self.bytes.saturating_add(program.bytes());
        if self.programs.len() < MOST_EARLY && bytes <= MOST_EARLY_BYTES {
            self.bytes = bytes;
            self.programs.push(program);
        }
    }

    /// Writes them: they begin with the first event.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn write(self, trace: &mut Trace<'_>, ts: Nanos) -> Result<(), ImportError> {
        self.programs.iter().try_for_each(|program| program.write(trace, ts))
    }
}
