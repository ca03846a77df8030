//! The pattern in one launch, with what its evidence and confidence go by.

use super::cost::Cost;
use super::groups::Oversized;
use crate::findings::allocating_stack::{AllocatingStack, Functions};
use crate::findings::materiality::CostShare;
use crate::findings::memory_use::MemoryUse;
use crate::stacks::function_weights::FunctionWeights;
use slowpath_tables::Quantity;

/// The pattern in one launch.
pub(super) struct UnusedMemory<'a> {
    pub(super) memory: &'a MemoryUse<'a>,
    pub(super) group: &'a Oversized,
    pub(super) cost: &'a Cost,
    /// What leaving the pages out saves by more than durations, or why that is not known.
    pub(super) saving: Result<Quantity, &'static str>,
    pub(super) stack: AllocatingStack,
    pub(super) share: CostShare,
    pub(super) touching: Option<FunctionWeights>,
}

impl UnusedMemory<'_> {
    pub(super) fn saving(&self) -> Quantity {
        self.saving.unwrap_or(self.cost.total)
    }

    /// What makes it the same in several launches.
    pub(super) fn key(&self) -> (String, Functions, u32) {
        (self.group.program.clone(), self.stack.functions(), self.cost.length.max(1).ilog2())
    }
}
