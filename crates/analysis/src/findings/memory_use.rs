//! What the memory calls of a launch say, derived once for the findings about memory.
//!
//! Owns which of them has what, so that no fault and no call is billed twice. Blocks that are mapped again and again have all
//! faults taken in them, and advice that gave pages of theirs back; what is given back and touched again elsewhere is what
//! [`ReleasedPages`] says; of the faults that are left, those that brought pages of which nothing was used are the third's.

use super::allocating_stack::AllocatingStacks;
use super::heap_trim_churn::groups::{self as churn, Churn};
use super::materiality::{CostShare, CpuTimes};
use super::oversized_first_touch::groups::{self as oversized, Oversized};
use super::transient_large_allocation::groups::{self as transient, Group};
use crate::call_stacks::CallStacks;
use crate::launch_facts::LaunchFacts;
use crate::memory_blocks::{self, MemoryBlocks};
use crate::released_pages::{self, ReleasedPages};
use crate::shares::cpu_times;
use slowpath_tables::ProcessKey;

/// The memory calls of one launch.
pub(super) struct MemoryUse<'a> {
    /// The launch.
    pub facts: &'a LaunchFacts<'a>,
    /// Its call stacks.
    pub call_stacks: &'a CallStacks<'a>,
    /// Those of memory calls.
    pub stacks: AllocatingStacks<'a>,
    /// Blocks that it mapped.
    pub blocks: MemoryBlocks,
    /// Those of them that were mapped, touched and released again and again.
    pub transient: Vec<Group>,
    /// Pages that it gave back, but for those of such blocks.
    pub released: ReleasedPages,
    /// Those of them that were given back and touched again, over and over.
    pub churn: Vec<Churn>,
    /// Other blocks, of which some pages that were touched were never used.
    pub oversized: Vec<Oversized>,
    cpu_times: CpuTimes,
}

impl<'a> MemoryUse<'a> {
    /// Derives it.
    pub fn new(facts: &'a LaunchFacts<'a>, call_stacks: &'a CallStacks<'a>) -> Self {
        let tables = &facts.tables;
        let mut stacks = AllocatingStacks::new(call_stacks);
        let blocks = memory_blocks::follow(tables);
        let transient = transient::groups(&blocks.blocks, &facts.processes, &mut stacks);
        let mut is_transient = vec![false; blocks.blocks.len()];
        transient.iter().flat_map(|group| &group.operations).for_each(|block| is_transient[*block as usize] = true);
        let theirs = blocks.discarded.iter().filter(|(_, block)| is_transient[*block as usize]);
        let theirs: Vec<usize> = theirs.map(|(call, _)| *call).collect();
        let released = released_pages::follow(tables, &theirs);
        let churn = churn::groups(&released.releases, &facts.processes, &mut stacks);
        let mut is_churned = vec![false; released.releases.len()];
        churn.iter().flat_map(|churn| &churn.operations).for_each(|release| is_churned[*release as usize] = true);
        let is_billed = |fault: usize| {
            let release = released.of_fault.get(fault).copied().flatten();
            release.is_some_and(|release| is_churned[release as usize])
        };
        let is_other = |block: u32| is_transient[block as usize];
        let oversized = oversized::groups(tables, &blocks, &facts.processes, &mut stacks, is_other, is_billed);
        let is_bad = !transient.is_empty() || !churn.is_empty() || !oversized.is_empty();
        let cpu_times = if is_bad { cpu_times(tables) } else { CpuTimes::default() };
        Self { facts, call_stacks, stacks, blocks, transient, released, churn, oversized, cpu_times }
    }

    /// A cost in ms beside the CPU time of those who pay it.
    pub fn share_of(&self, cost: f64, processes: impl Iterator<Item = ProcessKey>) -> CostShare {
        CostShare::new(cost, processes, &self.cpu_times, self.facts)
    }
}

#[cfg(test)]
mod tests;
