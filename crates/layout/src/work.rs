//! Pieces of work as their traces show them: the functions that each used, in the order of their first use.
//!
//! Owns what orders are made from and scored with. Leaves the traces themselves to [`crate::trace_file`].

use crate::trace_file::{FirstUse, Trace};

/// A function that a piece of work used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Address that the file states.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// The functions that a piece of work used, by first use, each once.
pub type Work = Vec<Used>;

/// What a trace used of an object.
pub fn of_trace(trace: &Trace, object: u32) -> Work {
    let used = |one: &FirstUse| Used { address: one.address, size: one.size };
    trace.uses_of(object).into_iter().map(used).collect()
}

/// Functions that any work used, each once.
pub fn all_used(works: &[Work]) -> Vec<Used> {
    let mut all: Vec<Used> = works.iter().flatten().copied().collect();
    all.sort_by_key(|used| used.address);
    all.dedup_by_key(|used| used.address);
    all
}
