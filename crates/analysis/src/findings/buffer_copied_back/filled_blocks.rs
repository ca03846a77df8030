//! Which blocks a copy filled first, known by the faults that it took in them.
//!
//! A sampled block that lives for less than the time between two samples of its thread is met once: in a copy into it or in one out
//! of it, never in both. The faults of its first touches are all recorded, and their call stack is that of the copy which takes them.
//! A stack that ends before its outermost function is no evidence: those of other copies end at the same place.

use crate::findings::allocating_stack::AllocatingStacks;
use slowpath_tables::{Fault, Nanos};
use std::collections::{HashMap, HashSet};

/// The faults of a recording and the block of each.
#[derive(Clone, Copy)]
pub(crate) struct BlockFaults<'a> {
    /// Rows of `faults`.
    pub faults: &'a [Fault],
    /// For each of them its block.
    pub of_fault: &'a [Option<u32>],
}

/// When which call stack first took a fault in a block.
#[derive(Default)]
pub(crate) struct FilledBlocks {
    first: HashMap<(u32, usize), Nanos>,
}

impl FilledBlocks {
    /// Of these blocks.
    pub fn new(blocks: &HashSet<u32>, faults: BlockFaults<'_>, stacks: &mut AllocatingStacks<'_>) -> Self {
        let mut first = HashMap::new();
        if blocks.is_empty() {
            return Self::default();
        }
        for (fault, block) in faults.faults.iter().zip(faults.of_fault) {
            let Some(block) = block.filter(|block| blocks.contains(block)) else { continue };
            // Without a whole stack nobody knows who took it.
            let number = stacks.number(fault.stack);
            if stacks.is_whole(number) {
                let ts = first.entry((block, number)).or_insert(fault.ts);
                *ts = fault.ts.min(*ts);
            }
        }
        Self { first }
    }

    /// Whether one of these call stacks ([`AllocatingStacks::number`]) took faults in the block before that moment.
    pub fn by(&self, sites: &HashSet<usize>, block: u32, before: Nanos) -> bool {
        sites.iter().any(|site| self.first.get(&(block, *site)).is_some_and(|ts| *ts < before))
    }
}
