//! Blocks of one place, with the faults in them and what their pages held at the end.
//!
//! Owns which faults and pages those are. A block counts where its pages were looked at when it was unmapped, when its process ended
//! or when the recording did. Of its faults those count that filled a page which was there then: the first in each page, no major ones,
//! none before advice gave pages of the block back, none that another finding counts. Pages that were looked at count where such a
//! fault brought them. Faults that forks caused are in no block ([`crate::memory::fork_faults`]).
//!
//! Not blocks of this finding: those that calls populate, whose faults do not tell what was touched; ranges that are reserved
//! (`MAP_NORESERVE`), in which an allocator or a runtime keeps what many ask for; threads' stacks.

use crate::findings::allocating_stack::AllocatingStacks;
use crate::findings::block_places::by_place;
use crate::integer_hash::IntegerSet;
use crate::memory::memory_blocks::{Block, BlockEnd, MemoryBlocks, SeenPage};
use crate::processes::Processes;
use slowpath_recording::Tables;
use slowpath_tables::{FaultKind, ProcessKey};
use std::collections::BTreeSet;

/// Share of a block that looks must stand for: it can be unmapped in parts, and not all of them are looked at.
const LEAST_LOOKED: f64 = 0.9;

/// Blocks that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Oversized {
    /// Program of their processes. Foreign text.
    pub program: String,
    /// Number of their stack in [`AllocatingStacks`].
    pub stack: usize,
    /// The blocks, in the order in which they came to be.
    pub blocks: Vec<u32>,
    /// Their processes.
    pub processes: BTreeSet<ProcessKey>,
    /// Faults in them: numbers of rows, in their order.
    pub faults: Vec<usize>,
    /// Pages of theirs that were looked at and that such faults brought.
    pub seen: Vec<SeenPage>,
    /// Pages that were there without such a fault.
    pub without_fault: u64,
}

/// Whether it is known what the pages of a block held at its end.
fn is_looked_at(block: &Block) -> bool {
    match block.end {
        BlockEnd::Unmapped | BlockEnd::Replaced => block.looked_at.0 as f64 >= block.length.0 as f64 * LEAST_LOOKED,
        BlockEnd::WithProcess | BlockEnd::Never => block.looked_at_end,
    }
}

/// All such blocks with a zero page, by place. `is_counted` says of a fault, and `is_other` of a block, that it is another finding's.
pub(crate) fn groups(
    tables: &Tables,
    memory: &MemoryBlocks,
    processes: &Processes,
    stacks: &mut AllocatingStacks<'_>,
    is_other: impl Fn(u32) -> bool,
    is_counted: impl Fn(usize) -> bool,
) -> Vec<Oversized> {
    if !memory.seen.iter().any(|page| page.is_zero) {
        return Vec::new();
    }
    let is_candidate = |number: u32, block: &Block| {
        block.faults > 0 && !block.populated && !block.is_room && is_looked_at(block) && !is_other(number)
    };
    // Most blocks hold no page of zeros: their faults need not be followed.
    let with_zeros: IntegerSet<u32> = memory.seen.iter().filter(|page| page.is_zero).map(|page| page.block).collect();
    let mut groups = Vec::new();
    let mut group_of_block = vec![None; memory.blocks.len()];
    for ((program, stack, _), members) in by_place(&memory.blocks, processes, stacks, is_candidate) {
        if !members.iter().any(|block| with_zeros.contains(block)) {
            continue;
        }
        members.iter().for_each(|block| group_of_block[*block as usize] = Some(groups.len()));
        let processes = members.iter().map(|block| memory.blocks[*block as usize].process).collect();
        let (faults, seen) = (Vec::new(), Vec::new());
        groups.push(Oversized {
            program: program.to_string(),
            stack,
            blocks: members,
            processes,
            faults,
            seen,
            without_fault: 0,
        });
    }
    let (page_bytes, huge_page) = (tables.manifest.host.page(), tables.manifest.host.huge_page().0);
    let mut touched: IntegerSet<(u32, u64)> = IntegerSet::default();
    // A fault that brings a huge page shows one address of many.
    let mut huge: IntegerSet<(u32, u64)> = IntegerSet::default();
    for (row, (fault, block)) in tables.faults.iter().zip(&memory.of_fault).enumerate() {
        let Some(block) = *block else { continue };
        let Some(group) = group_of_block[block as usize] else { continue };
        let is_gone = memory.blocks[block as usize].discarded_at.is_some_and(|discarded| fault.ts < discarded);
        if fault.kind == FaultKind::Major || is_gone || is_counted(row) {
            continue;
        }
        let page = (block, fault.address - fault.address % page_bytes);
        // What is read first is faulted once more when it is written, and so is what was forked in between.
        if touched.insert(page) {
            groups[group].faults.push(row);
            if memory.is_huge(row) {
                huge.insert((block, fault.address / huge_page));
            }
        }
    }
    for page in &memory.seen {
        let Some(group) = group_of_block[page.block as usize].and_then(|group| groups.get_mut(group)) else { continue };
        let is_huge = huge.contains(&(page.block, page.page / huge_page));
        if is_huge || touched.contains(&(page.block, page.page)) {
            group.seen.push(*page);
        } else {
            group.without_fault += 1;
        }
    }
    groups.retain(|group| group.seen.iter().any(|page| page.is_zero));
    groups
}
