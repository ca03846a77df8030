//! What it costs on a machine to map a block of memory, touch it and release it, as measured just before a recording and, unless that
//! was cut short, just after it.
//!
//! Owns the types in the manifest. Leaves measuring to `cli`, and what follows from it to `analysis`, which trusts none of these
//! numbers: a manifest is a file that anybody may have written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Bytes, Nanos, Quantity};

/// The measurement of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryCost {
    /// How long measuring took: before anything was recorded, and after all was where it was measured then too.
    pub took: Nanos,
    /// What was measured, by size of the block.
    pub blocks: Vec<BlockCost>,
}

/// Blocks of one size, against the same writes into a block that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCost {
    /// Size of a block.
    pub bytes: Bytes,
    /// Whether other memory was written before each operation, so that caches hold little of the block and of the pages that the
    /// last one gave back. A block of many MiB does that itself.
    pub displaced: bool,
    /// Whether it was measured after the recording: then there is a row of the same kind from before it, unless that was not reached.
    /// Recordings that were cut short (the recorder was killed, or asked to end a second time) have none from after. False in recordings
    /// that lack the field.
    #[serde(default)]
    pub after: bool,
    /// Whether the block asked for huge pages (`MADV_HUGEPAGE`), and so did the one that is kept. False in recordings that lack the
    /// field.
    #[serde(default)]
    pub advised: bool,
    /// Operations: a block that is mapped, written as a whole and unmapped.
    pub operations: u64,
    /// Page faults in all operations, as the kernel counted them.
    pub faults: u64,
    /// Whether the kernel gave huge pages: fewer faults than half the pages.
    pub huge_pages: bool,
    /// CPU time that keeping the block saves for each page of 4 KiB, in ns: the centre of the differences between an operation and
    /// the same writes into a kept block, with its interval.
    pub per_page: Quantity,
    /// What an operation costs beyond its writes, mmap and munmap and the durations of its faults, for each fault, in ns:
    /// entering and leaving the kernel and what is displaced, less what recording adds inside a fault, for that is in the durations.
    /// Null where no recorder watched blocks of this size.
    pub unseen: Option<Quantity>,
}
