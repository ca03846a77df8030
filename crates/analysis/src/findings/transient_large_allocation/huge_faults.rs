//! Faults that brought a huge page, where programs or their libraries ask for those (numpy does, for arrays of 4 MiB and more).
//!
//! No event says how much a fault brought. Told by two things together: no other page of its 2 MiB faulted in the same block, and it
//! took [`LEAST_DURATION`]. A page of 4 KiB whose fault was interrupted for so long has neighbours that faulted too, unless the program
//! touches one page of 2 MiB. Blocks rarely begin at a multiple of 2 MiB, so most have small pages at both ends.

use crate::integer_hash::IntegerMap;
use crate::memory_blocks::MemoryBlocks;
use crate::memory_fixes::HUGE_PAGE;
use slowpath_tables::{Fault, Nanos};
use std::collections::BTreeMap;

/// What zeroing 2 MiB takes at least: at 100 GB/s, more than any memory of today takes from one processor.
pub(super) const LEAST_DURATION: Nanos = Nanos(20_000);

/// Which of the faults in `numbers` brought a huge page, in their order.
pub(super) fn which(memory: &MemoryBlocks, faults: &[Fault], numbers: &[usize]) -> Vec<bool> {
    let place = |number: usize| {
        let block = memory.of_fault[number].filter(|block| memory.blocks[*block as usize].length >= HUGE_PAGE)?;
        Some((block, faults[number].address / HUGE_PAGE.0))
    };
    let is_long = |number: usize| faults[number].duration.is_some_and(|duration| duration >= LEAST_DURATION);
    let mut in_place: IntegerMap<(u32, u64), u64> =
        numbers.iter().filter(|number| is_long(**number)).filter_map(|number| Some((place(*number)?, 0))).collect();
    if in_place.is_empty() {
        return vec![false; numbers.len()];
    }
    for place in numbers.iter().filter_map(|number| place(*number)) {
        if let Some(count) = in_place.get_mut(&place) {
            *count += 1;
        }
    }
    let is_alone = |number: usize| place(number).is_some_and(|place| in_place.get(&place) == Some(&1));
    numbers.iter().map(|number| is_long(*number) && is_alone(*number)).collect()
}

/// How many each block has.
pub(super) fn by_block(memory: &MemoryBlocks, numbers: &[usize], are_huge: &[bool]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for (number, _) in numbers.iter().zip(are_huge).filter(|(_, is_huge)| **is_huge) {
        if let Some(block) = memory.of_fault[*number] {
            *counts.entry(block).or_default() += 1;
        }
    }
    counts
}
