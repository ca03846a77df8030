//! What would end a hidden cost of memory: the names of the fixes, and the settings of glibc's malloc that a finding asks for.
//!
//! Owns how such settings follow from blocks, how those of several findings are combined, and their text. A finding carries them
//! ([`crate::fix_inputs`]). Leaves whether a program heeds them, and trying them, to `fix` and `verify`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Bytes;
use std::fmt;

/// Fix in the source: the block is kept, or not needed.
pub const REUSE_BUFFER: &str = "reuse_buffer";
/// Fix in the source: no more is made, or cleared, than is used.
pub const RIGHT_SIZE_BUFFER: &str = "right_size_buffer";
/// Fix in the source: data are used where they lie, without a copy of them.
pub const AVOID_COPY: &str = "avoid_copy";
/// glibc's malloc is configured to keep memory.
pub const ALLOCATOR_TUNABLES: &str = "allocator_tunables";
/// An allocator that keeps more, in front of the C library's.
pub const REPLACE_ALLOCATOR: &str = "replace_allocator";
/// Huge pages for what malloc gives out: one fault for 2 MiB.
pub const HUGE_PAGES: &str = "huge_pages";
/// Fix in the source: memory that the program maps itself is aligned and asks for huge pages.
pub const ADVISE_HUGE_PAGES: &str = "advise_huge_pages";
/// Page tables are filled when memory is mapped: no fault for each page.
pub const POPULATE_AT_MAP: &str = "populate_at_map";

/// The highest `M_MMAP_THRESHOLD` that is documented for 64-bit systems (`DEFAULT_MMAP_THRESHOLD_MAX`, mallopt(3)). Newer
/// versions of glibc take more (2.36 does), older ones refuse it; and no heap of a thread holds more than 64 MiB.
pub const MOST_MMAP_THRESHOLD: u64 = 32 << 20;

/// Of `glibc.malloc.mmap_max`: no block is mapped by itself.
const NONE_MAPPED: u64 = 0;
/// Of `glibc.malloc.arena_max`: all threads share the heap of brk.
const ONE_HEAP: u64 = 1;

/// Times the blocks themselves that may lie free at the end of a heap before it is given back: other memory lies between them.
const TRIM_FACTOR: u64 = 4;

/// The largest `trim_threshold` that is asked for: what machines of today have, so that no heap reaches it.
const MOST_TRIM_THRESHOLD: u64 = 1 << 40;

/// Settings of glibc's malloc: thresholds and padding in bytes. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MallocSettings {
    /// Blocks from this size on are mapped one by one (`M_MMAP_THRESHOLD`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mmap_threshold: Option<u64>,
    /// So much free memory at the end of a heap is given back (`M_TRIM_THRESHOLD`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim_threshold: Option<u64>,
    /// So much more is taken when a heap grows, and kept when it is given back (`M_TOP_PAD`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_pad: Option<u64>,
    /// So many blocks are mapped one by one at most (`M_MMAP_MAX`); the others are in the heap, whatever their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mmap_max: Option<u64>,
    /// So many heaps for threads at most (`M_ARENA_MAX`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arena_max: Option<u64>,
}

impl MallocSettings {
    /// Those that keep `at_once` blocks of this size. Mapping one by one begins at the next power of two above; blocks that are too
    /// large for that setting are kept where none is mapped by itself. Only the heap of brk has room for those, which belongs to the
    /// first thread: where `by_other_threads` is said, the others share it. `None` for a size that no machine has.
    pub fn keeping(block: Bytes, at_once: u64, by_other_threads: bool) -> Option<Self> {
        let above = block.0.checked_add(1)?.checked_next_power_of_two()?;
        let trim = above.checked_mul(TRIM_FACTOR)?.saturating_mul(at_once.max(1));
        let trim_threshold = Some(trim.min(MOST_TRIM_THRESHOLD));
        Some(if block.0 < MOST_MMAP_THRESHOLD {
            Self { mmap_threshold: Some(above), trim_threshold, ..Self::default() }
        } else {
            let arena_max = by_other_threads.then_some(ONE_HEAP);
            Self { mmap_max: Some(NONE_MAPPED), trim_threshold, arena_max, ..Self::default() }
        })
    }

    /// Each setting with its name in `GLIBC_TUNABLES`.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("glibc.malloc.mmap_threshold", self.mmap_threshold),
            ("glibc.malloc.trim_threshold", self.trim_threshold),
            ("glibc.malloc.top_pad", self.top_pad),
            ("glibc.malloc.mmap_max", self.mmap_max),
            ("glibc.malloc.arena_max", self.arena_max),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Settings that do what both do: the larger of each threshold, the smaller of each number.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            mmap_max: least(self.mmap_max, other.mmap_max),
            arena_max: least(self.arena_max, other.arena_max),
            mmap_threshold: self.mmap_threshold.max(other.mmap_threshold),
            trim_threshold: self.trim_threshold.max(other.trim_threshold),
            top_pad: self.top_pad.max(other.top_pad),
        }
    }
}

impl fmt::Display for MallocSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.named().enumerate() {
            write!(f, "{}{name}={value}", if number == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn thresholds(block: u64, at_once: u64) -> Option<(u64, u64)> {
        let settings = MallocSettings::keeping(Bytes(block), at_once, true)?;
        assert_eq!((settings.mmap_max, settings.arena_max), (None, None));
        Some((settings.mmap_threshold?, settings.trim_threshold?))
    }

    #[test]
    fn the_threshold_is_the_next_power_of_two_above_the_block_up_to_what_is_documented() {
        assert_eq!(thresholds(1352 * KIB, 1), Some((2 * MIB, 8 * MIB)));
        assert_eq!(thresholds(2 * MIB - 4 * KIB, 3), Some((2 * MIB, 24 * MIB)));
        assert_eq!(thresholds(2 * MIB, 0), Some((4 * MIB, 16 * MIB)));
        assert_eq!(thresholds(32 * MIB - 4 * KIB, 1), Some((32 * MIB, 128 * MIB)));
    }

    #[test]
    fn larger_blocks_are_kept_in_the_heap_of_brk_which_other_threads_must_share() {
        let settings = |block, threads| MallocSettings::keeping(Bytes(block), 2, threads).map(|one| one.to_string());
        let first = "glibc.malloc.trim_threshold=536870912:glibc.malloc.mmap_max=0";
        assert_eq!(settings(32 * MIB, false).as_deref(), Some(first));
        assert_eq!(settings(32 * MIB, true), Some(format!("{first}:glibc.malloc.arena_max=1")));
        assert!(settings(1 << 60, false).unwrap().contains(&format!("trim_threshold={MOST_TRIM_THRESHOLD}:")));
        assert_eq!(settings(u64::MAX, false), None);
    }

    #[test]
    fn settings_are_written_as_glibc_reads_them() {
        let both = MallocSettings::keeping(Bytes(MIB), 1, false).unwrap();
        let thresholds = "glibc.malloc.mmap_threshold=2097152:glibc.malloc.trim_threshold=8388608";
        assert_eq!(both.to_string(), thresholds);
        let all = MallocSettings { top_pad: Some(4096), mmap_max: Some(0), arena_max: Some(2), ..both };
        let rest = "glibc.malloc.top_pad=4096:glibc.malloc.mmap_max=0:glibc.malloc.arena_max=2";
        assert_eq!(all.to_string(), format!("{thresholds}:{rest}"));
    }

    #[test]
    fn together_the_larger_of_each_threshold_holds_and_the_smaller_of_each_number() {
        let small = MallocSettings::keeping(Bytes(MIB), 4, false).unwrap();
        let large = MallocSettings { top_pad: Some(1), ..MallocSettings::keeping(Bytes(3 * MIB), 1, false).unwrap() };
        let both = MallocSettings {
            mmap_threshold: Some(4 * MIB),
            trim_threshold: Some(32 * MIB),
            top_pad: Some(1),
            ..MallocSettings::default()
        };
        assert_eq!((small.with(large), large.with(small)), (both, both));
        let largest = MallocSettings::keeping(Bytes(64 * MIB), 1, true).unwrap();
        let some = MallocSettings { mmap_max: Some(9), arena_max: Some(9), ..small };
        for all in [some.with(largest), largest.with(some), small.with(largest)] {
            assert_eq!((all.mmap_max, all.arena_max, all.mmap_threshold), (Some(0), Some(1), Some(2 * MIB)));
        }
    }
}
