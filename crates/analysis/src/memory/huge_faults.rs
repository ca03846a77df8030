//! Faults that bring a huge page.
//!
//! Owns which faults of a block these may be, and how many bytes faults brought. No row says how large the page was that a fault
//! brought. But a huge page lies at a multiple of its size, fills it, and leaves nothing there to fault for; and it takes a while to
//! fill with zeros. So where such a part of a block has one fault, or two (read first, then written), and one of them took as long
//! as that, it may have been a huge page: it is counted as one, and findings say that it may be. A part in which single pages were
//! touched, and one of those faults was slow for another reason, looks the same, unless the program has refused huge pages there.
//!
//! Transparent huge pages of other sizes (64 KiB, say) are not told apart from strides.

use crate::integer_hash::{IntegerMap, IntegerSet};
use crate::memory::block::Block;
use crate::time::off_cpu_times::OffCpuTimes;
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, Nanos};

pub use crate::memory::block::Brought;

/// Least time to fill 2 MiB with zeros: at 100 GB/s, more than one CPU of today writes. Larger ones take longer.
const LEAST_TIME: Nanos = Nanos(20_000);

/// Faults in one part that can be those of a huge page: a read maps the page of zeros, a write the block's own.
const MOST_FAULTS: u64 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct SpanFaults {
    faults: u64,
    /// The first fault that was slow: its row.
    slow: Option<usize>,
}

/// Says of each block what its faults brought, where the program had not `refused` huge pages at their places (rows), and returns the rows of those that may have brought huge pages, sorted.
pub(crate) fn add(
    blocks: &mut [Block],
    of_fault: &[Option<u32>],
    refused: &IntegerSet<usize>,
    tables: &Tables,
    off_cpu: &OffCpuTimes,
) -> Vec<usize> {
    let (page, huge_page) = (tables.manifest.host.page(), tables.manifest.host.huge_page());
    let mut parts: IntegerMap<(u32, u64), SpanFaults> = IntegerMap::default();
    for (row, (fault, number)) in tables.faults.iter().zip(of_fault).enumerate() {
        let may_hold = |number: &u32| blocks.get(*number as usize).is_some_and(|block| block.length >= huge_page);
        let Some(number) = number.filter(may_hold) else { continue };
        let part = parts.entry((number, fault.address / huge_page.0)).or_default();
        part.faults += 1;
        // One in which its thread was displaced is not slow for that.
        if !refused.contains(&row) && off_cpu.fault_time(row, fault).is_none_or(|time| time >= LEAST_TIME) {
            part.slow.get_or_insert(row);
        }
    }
    let mut rows = Vec::new();
    let mut in_huge_pages: IntegerMap<u32, u64> = IntegerMap::default();
    for ((number, _), part) in parts.iter().filter(|(_, part)| part.faults <= MOST_FAULTS) {
        let (Some(block), Some(row)) = (blocks.get_mut(*number as usize), part.slow) else { continue };
        rows.push(row);
        block.brought.huge_pages += 1;
        *in_huge_pages.entry(*number).or_default() += part.faults;
    }
    for (number, block) in (0u32..).zip(blocks) {
        let small = block.faults.saturating_sub(in_huge_pages.get(&number).copied().unwrap_or(0));
        let bytes = small.saturating_mul(page);
        let bytes = bytes.saturating_add(block.brought.huge_pages.saturating_mul(huge_page.0));
        block.brought.bytes = Bytes(bytes.min(block.length.0));
    }
    rows.sort_unstable();
    rows
}
