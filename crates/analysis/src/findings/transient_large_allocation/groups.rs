//! Blocks that one place in a program maps again and again.
//!
//! Owns which of the blocks of one place ([`crate::findings::block_places`]) are mapped, touched and released again and again.

use crate::findings::allocating_stack::AllocatingStacks;
use crate::findings::block_places::{AllocationPlace, by_place};
use crate::memory::memory_blocks::Block;
use crate::processes::Processes;
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::{BTreeMap, BTreeSet};

/// Operations from which on a pattern is one. Fewer can be a start, a resize of everything, or chance.
pub const LEAST_OPERATIONS: usize = 8;

/// Least number of operations for each block that must exist at the same time. Blocks that are kept instead save all operations
/// but those: with 4, three quarters. It also says that lifetimes are short: on average, a quarter of the recording at most.
pub const LEAST_REUSE: usize = 4;

/// Blocks that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Program of their processes. Foreign text.
    pub program: String,
    /// Number of their stack in [`AllocatingStacks`].
    pub stack: usize,
    /// Those that were touched and released again, in the order in which they came to be.
    pub operations: Vec<u32>,
    /// Those that were touched and not released by the program.
    pub not_released: u64,
    /// Most blocks of each process that existed at the same time; every process with operations has one.
    pub peaks: BTreeMap<ProcessKey, usize>,
}

impl Group {
    /// Most blocks at the same time, each process for itself: a block cannot be kept for another process.
    pub fn peak(&self) -> usize {
        self.peaks.values().sum()
    }

    /// Most blocks at the same time in one process.
    pub fn most_in_a_process(&self) -> usize {
        self.peaks.values().copied().max().unwrap_or(0)
    }

    fn is_again_and_again(&self) -> bool {
        self.operations.len() >= LEAST_OPERATIONS && self.operations.len() >= self.peak().saturating_mul(LEAST_REUSE)
    }

    /// The operations that remain when blocks are kept: as many of each process as exist at the same time, the first ones.
    pub fn first_uses<'a>(&'a self, blocks: &'a [Block]) -> impl Iterator<Item = u32> {
        let mut left = self.peaks.clone();
        self.operations.iter().copied().filter(move |number| {
            let left = left.entry(blocks[*number as usize].process).or_default();
            let is_first = *left > 0;
            *left = left.saturating_sub(1);
            is_first
        })
    }
}

/// The groups whose blocks are mapped, touched and released again and again.
pub(crate) fn groups(blocks: &[Block], processes: &Processes, stacks: &mut AllocatingStacks<'_>) -> Vec<Group> {
    let is_used = |_, block: &Block| block.faults > 0 || block.populated;
    let members = by_place(blocks, processes, stacks, is_used);
    let group = |((program, stack, _), members): (AllocationPlace, Vec<u32>)| {
        let (operations, others): (Vec<u32>, Vec<u32>) =
            members.iter().copied().partition(|number| blocks[*number as usize].is_released());
        let mut peaks = peaks(members.iter().map(|number| &blocks[*number as usize]));
        let with_operations: BTreeSet<ProcessKey> =
            operations.iter().map(|number| blocks[*number as usize].process).collect();
        peaks.retain(|process, _| with_operations.contains(process));
        Group { program: program.to_string(), stack, operations, not_released: others.len() as u64, peaks }
    };
    members.into_iter().map(group).filter(Group::is_again_and_again).collect()
}

/// Most blocks of each process at the same time.
fn peaks<'a>(blocks: impl Iterator<Item = &'a Block>) -> BTreeMap<ProcessKey, usize> {
    // At the same moment blocks end before others begin.
    let mut changes: BTreeMap<ProcessKey, Vec<(Nanos, bool)>> = BTreeMap::new();
    for block in blocks {
        let changes = changes.entry(block.process).or_default();
        changes.push((block.opened, true));
        changes.extend(block.closed.map(|closed| (closed, false)));
    }
    let peak = |mut changes: Vec<(Nanos, bool)>| {
        changes.sort_unstable();
        let (mut now, mut most) = (0usize, 0);
        for (_, begins) in changes {
            now = if begins { now + 1 } else { now.saturating_sub(1) };
            most = most.max(now);
        }
        most
    };
    changes.into_iter().map(|(process, changes)| (process, peak(changes))).collect()
}
