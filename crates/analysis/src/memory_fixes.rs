//! What would end a hidden cost of memory: the names of the fixes, and the settings of glibc's malloc that a finding asks for.
//!
//! Owns how such settings follow from blocks, how those of several findings are combined, and their text. A finding puts them
//! into its evidence, in a row with `fix` and `settings`; `fix` reads them from there and computes none. Leaves whether a program
//! heeds them, and trying them, to `fix` and `verify`.

use crate::finding::{Finding, Row};
use serde_json::Value;
use slowpath_tables::Bytes;
use std::fmt;

/// Fix in the source: the block is kept, or not needed.
pub const KEEP_BUFFER: &str = "keep_buffer";
/// Fix in the source: no more is made, or cleared, than is used.
pub const SIZE_TO_USE: &str = "size_to_use";
/// glibc's malloc is told to keep memory.
pub const ALLOCATOR_TUNABLES: &str = "allocator_tunables";
/// An allocator that keeps more, in front of the C library's.
pub const ANOTHER_ALLOCATOR: &str = "another_allocator";
/// Huge pages for what malloc gives out: one fault for 2 MiB.
pub const HUGE_PAGES: &str = "huge_pages";
/// Page tables are filled when memory is mapped: no fault for each page.
pub const POPULATE_AT_MAP: &str = "populate_at_map";

/// Size of a huge page on x86-64, and on arm64 with pages of 4 KiB.
pub const HUGE_PAGE: Bytes = Bytes(2 << 20);

/// The highest `M_MMAP_THRESHOLD` that is documented for 64-bit systems (`DEFAULT_MMAP_THRESHOLD_MAX`, mallopt(3)). Newer
/// versions of glibc take more (2.36 does), older ones refuse it; and no heap of a thread holds more than 64 MiB.
pub const MOST_MMAP_THRESHOLD: u64 = 32 << 20;

/// Times the blocks themselves that may lie free at the end of a heap before it is given back: other memory lies between them.
const TRIM_FACTOR: u64 = 4;

/// Settings of glibc's malloc, in bytes. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MallocSettings {
    /// Blocks from this size on are mapped one by one (`M_MMAP_THRESHOLD`).
    pub mmap_threshold: Option<u64>,
    /// So much free memory at the end of a heap is given back (`M_TRIM_THRESHOLD`).
    pub trim_threshold: Option<u64>,
    /// So much more is taken when a heap grows, and kept when it is given back (`M_TOP_PAD`).
    pub top_pad: Option<u64>,
}

impl MallocSettings {
    /// Those that keep `at_once` blocks of this size: mapping one by one begins at the next power of two above. `None` where the
    /// blocks are too large for it.
    pub fn keeping(block: Bytes, at_once: u64) -> Option<Self> {
        let threshold = block.0.checked_add(1)?.checked_next_power_of_two()?.min(MOST_MMAP_THRESHOLD);
        let trim = threshold.saturating_mul(TRIM_FACTOR).saturating_mul(at_once.max(1));
        (block.0 < threshold).then_some(Self {
            mmap_threshold: Some(threshold),
            trim_threshold: Some(trim),
            top_pad: None,
        })
    }

    /// Each setting with its name in `GLIBC_TUNABLES`.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("glibc.malloc.mmap_threshold", self.mmap_threshold),
            ("glibc.malloc.trim_threshold", self.trim_threshold),
            ("glibc.malloc.top_pad", self.top_pad),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Settings from their text; `None` where it names anything else, or says one twice.
    pub fn parse(text: &str) -> Option<Self> {
        let mut settings = Self::default();
        for part in text.split(':') {
            let (name, value) = part.split_once('=')?;
            let setting = match name {
                "glibc.malloc.mmap_threshold" => &mut settings.mmap_threshold,
                "glibc.malloc.trim_threshold" => &mut settings.trim_threshold,
                "glibc.malloc.top_pad" => &mut settings.top_pad,
                _ => return None,
            };
            if setting.replace(value.parse().ok()?).is_some() {
                return None;
            }
        }
        Some(settings)
    }

    /// Settings that do what both do: the larger of each.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            mmap_threshold: self.mmap_threshold.max(other.mmap_threshold),
            trim_threshold: self.trim_threshold.max(other.trim_threshold),
            top_pad: self.top_pad.max(other.top_pad),
        }
    }

    /// What a finding asks for; `None` where it asks for nothing of this kind.
    pub fn of_finding(finding: &Finding) -> Option<Self> {
        let rows = rows_of(finding, ALLOCATOR_TUNABLES);
        let settings = rows.filter_map(|row| Self::parse(row.get("settings")?.as_str()?));
        settings.reduce(Self::with)
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

/// The rows of evidence that say what a fix needs to know.
pub fn rows_of<'a>(finding: &'a Finding, fix: &'a str) -> impl Iterator<Item = &'a Row> {
    let rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    rows.filter(move |row| row.get("fix").and_then(Value::as_str) == Some(fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn thresholds(block: u64, at_once: u64) -> Option<(u64, u64)> {
        let settings = MallocSettings::keeping(Bytes(block), at_once)?;
        Some((settings.mmap_threshold?, settings.trim_threshold?))
    }

    #[test]
    fn the_threshold_is_the_next_power_of_two_above_the_block_up_to_what_is_documented() {
        assert_eq!(thresholds(1352 * KIB, 1), Some((2 * MIB, 8 * MIB)));
        assert_eq!(thresholds(2 * MIB - 4 * KIB, 3), Some((2 * MIB, 24 * MIB)));
        assert_eq!(thresholds(2 * MIB, 0), Some((4 * MIB, 16 * MIB)));
        assert_eq!(thresholds(32 * MIB - 4 * KIB, 1), Some((32 * MIB, 128 * MIB)));
        assert_eq!(thresholds(32 * MIB, 1), None);
        assert_eq!(thresholds(u64::MAX, 1), None);
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        let both = MallocSettings::keeping(Bytes(MIB), 1).unwrap();
        assert_eq!(both.to_string(), "glibc.malloc.mmap_threshold=2097152:glibc.malloc.trim_threshold=8388608");
        let all = MallocSettings { top_pad: Some(4096), ..both };
        assert_eq!(MallocSettings::parse(&all.to_string()), Some(all));
        for wrong in ["", "glibc.malloc.check=1", "glibc.malloc.top_pad", "glibc.malloc.top_pad=x"] {
            assert_eq!(MallocSettings::parse(wrong), None, "{wrong}");
        }
        assert_eq!(MallocSettings::parse("glibc.malloc.top_pad=1:glibc.malloc.top_pad=2"), None);
    }

    #[test]
    fn together_the_larger_of_each_holds() {
        let small = MallocSettings::keeping(Bytes(MIB), 4).unwrap();
        let large = MallocSettings { top_pad: Some(1), ..MallocSettings::keeping(Bytes(3 * MIB), 1).unwrap() };
        let both = MallocSettings { mmap_threshold: Some(4 * MIB), trim_threshold: Some(32 * MIB), top_pad: Some(1) };
        assert_eq!((small.with(large), large.with(small)), (both, both));
    }
}
