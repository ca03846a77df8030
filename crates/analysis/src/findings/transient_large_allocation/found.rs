//! The pattern in one launch, with what its evidence and confidence go by.

use super::cost::Cost;
use super::groups::Group;
use super::prediction::Prediction;
use crate::findings::allocating_stack::{AllocatingStack, Functions};
use crate::findings::materiality::CostShare;
use crate::findings::memory_use::MemoryUse;
use crate::memory::memory_blocks::Block;
use crate::stacks::function_weights::FunctionWeights;
use slowpath_tables::{ProcessKey, Quantity};
use std::collections::BTreeSet;

/// The pattern in one launch.
pub(super) struct TransientBlocks<'a> {
    pub(super) memory: &'a MemoryUse<'a>,
    pub(super) group: &'a Group,
    pub(super) cost: Cost,
    /// What keeping the blocks saves by more than durations, or why that is not known.
    pub(super) prediction: Result<Prediction, &'static str>,
    pub(super) stack: AllocatingStack,
    pub(super) share: CostShare,
    pub(super) touching: Option<FunctionWeights>,
}

impl TransientBlocks<'_> {
    pub(super) fn operations(&self) -> impl Iterator<Item = &Block> {
        self.group.operations.iter().map(|number| &self.memory.blocks.blocks[*number as usize])
    }

    pub(super) fn processes(&self) -> BTreeSet<ProcessKey> {
        self.group.peaks.keys().copied().collect()
    }

    pub(super) fn saving(&self) -> Quantity {
        self.prediction.map_or(self.cost.saving, |prediction| prediction.saving)
    }

    /// What makes it the same in several launches.
    pub(super) fn key(&self) -> (String, Functions, u32) {
        (self.group.program.clone(), self.stack.functions(), self.cost.length.max(1).ilog2())
    }
}
