//! The events of a Perfetto trace that rows are made of.

use super::programs::Program;
use slowpath_tables::PageCacheOp;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Another thread runs.
    Switch {
        /// Who ran before, where the event says it.
        prev: Option<u32>,
        /// State of that one.
        state: &'static str,
        /// Who runs; none is the idle task.
        next: Option<u32>,
        /// Its name.
        name: String,
    },
    /// A thread was woken.
    Woken(u32),
    /// A thread waits for storage.
    Storage(u32),
    /// One of the kernel's pages entered or left the page cache: device, inode, index.
    Page(PageCacheOp, (u64, u64, u64)),
    /// A request to a block device: device, sector, bytes, whether it reads.
    Issue((u64, u64, u64, bool)),
    /// The same when it is complete.
    Complete((u64, u64, u64, bool)),
    /// A new task; whether it is a thread of the process.
    New(u32, bool),
    /// A program is executed.
    Exec(String),
    /// A thread ended.
    Exit(u32),
    /// Events of this CPU before this one are missing.
    Lost,
    /// A process runs this program, and may do so for long.
    Runs(Box<Program>),
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub ts: u64,
    /// The running thread, where the event says it.
    pub tid: Option<u32>,
    /// Where.
    pub cpu: u32,
    /// What.
    pub what: What,
}
