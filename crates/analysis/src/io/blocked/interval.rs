//! One wait of a thread for a file. Which time counts as one is for [`crate::io::blocked`].

use crate::io::files::FileId;
use slowpath_tables::{Nanos, ProcessKey};

/// Why a thread waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// A fault that started a read.
    MajorFault,
    /// A fault on a page that somebody else was reading.
    MinorFault,
    /// A read call that started reads.
    Read,
    /// A read call that waited for pages somebody else was reading.
    ReadOfOthers,
}

/// An interval in which a thread waited for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedInterval {
    /// Begin.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
    /// Process.
    pub process: ProcessKey,
    /// Thread.
    pub tid: u32,
    /// The file; `None` where the address of a major fault could not be resolved.
    pub file: Option<FileId>,
    /// First page waited for.
    pub page: u64,
    /// Why.
    pub wait: Wait,
}
