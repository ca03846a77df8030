//! A block of anonymous memory: who mapped it, how long it lasted, which faults were taken in it. Blocks are followed by
//! [`crate::memory::memory_blocks`].

use slowpath_tables::{Bytes, Nanos, ProcessKey};

/// What faults brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Bytes; a page that is read first and written then has two faults, so no more than the block has.
    pub bytes: Bytes,
    /// Pages among them that may be huge ones.
    pub huge_pages: u64,
}

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEnd {
    /// The program unmapped it.
    Unmapped,
    /// The program mapped something else over it.
    Replaced,
    /// Its process ended, or executed a program.
    WithProcess,
    /// It was mapped when recording ended.
    Never,
}

/// A block of anonymous memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its process.
    pub process: ProcessKey,
    /// The thread that mapped it.
    pub mapped_by: u32,
    /// The thread that took its last byte away; `None` where no thread did.
    pub released_by: Option<u32>,
    /// Call stack of the mmap: `stacks.id`.
    pub stack: Option<u32>,
    /// When mmap returned.
    pub opened: Nanos,
    /// When the call began that took its last byte away, or its process ended; `None` while it lasts.
    pub closed: Option<Nanos>,
    /// How it ended.
    pub end: BlockEnd,
    /// Size, in whole pages, at its largest since the first touch.
    pub length: Bytes,
    /// Whether it is a thread's stack (`MAP_STACK`).
    pub is_stack: bool,
    /// Whether children share its pages, which are those of a file without a name then (`MAP_SHARED`).
    pub is_shared: bool,
    /// Whether no swap space was set aside for it (`MAP_NORESERVE`): how allocators map the room that a heap may grow into.
    pub is_room: bool,
    /// Whether a call brought its pages, without recorded faults (`MAP_POPULATE`, `MADV_POPULATE_*`).
    pub populated: bool,
    /// Time in mmap and mremap, and in advice that brings pages.
    pub map_time: Nanos,
    /// Time in munmap, and in advice that gives pages back.
    pub release_time: Nanos,
    /// What threads did not run in all these calls, and is in neither of the times.
    pub calls_off_cpu: Nanos,
    /// Calls of such advice.
    pub discards: u64,
    /// When the last of them began.
    pub discarded_at: Option<Nanos>,
    /// Bytes for which looks at its pages stand, before munmap took them.
    pub looked_at: Bytes,
    /// Whether the pages of its process were looked at when that ended, or the recording did, and it was mapped still.
    pub looked_at_end: bool,
    /// Faults in it.
    pub faults: u64,
    /// Those of unknown duration.
    pub untimed: u64,
    /// Major faults: from swap, say.
    pub major: u64,
    /// Faults that the kernel took on behalf of a thread.
    pub by_kernel: u64,
    /// Time in faults of known duration.
    pub fault_time: Nanos,
    /// Faults in it that forks caused, in none of the numbers above.
    pub fork_faults: u64,
    /// Bytes of the pages that its faults brought, and how many of those may be huge ones ([`crate::memory::huge_faults`]).
    pub brought: Brought,
}

impl Block {
    /// Time in all faults of known duration and all calls.
    pub fn time(&self) -> Nanos {
        self.map_time + self.release_time + self.fault_time
    }

    /// From its mmap to its end; `None` while it lasts.
    pub fn lifetime(&self) -> Option<Nanos> {
        Some(self.closed? - self.opened)
    }

    /// Whether the program took it away itself.
    pub fn is_released(&self) -> bool {
        matches!(self.end, BlockEnd::Unmapped | BlockEnd::Replaced)
    }
}
