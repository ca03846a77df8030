//! The pattern in one launch, with what its evidence and confidence go by.

use super::cost::Cost;
use super::groups::{self, Churn};
use crate::findings::allocating_stack::AllocatingStack;
use crate::findings::materiality::CostShare;
use crate::findings::memory_use::MemoryUse;
use crate::memory::released_pages::{Release, ReleaseKind};
use crate::stacks::function_weights::FunctionWeights;

/// The pattern in one launch.
pub(super) struct HeapChurn<'a> {
    pub(super) memory: &'a MemoryUse<'a>,
    pub(super) group: &'a Churn,
    pub(super) cost: Cost,
    /// The stack that costs most of it.
    pub(super) stack: AllocatingStack,
    pub(super) share: CostShare,
    pub(super) touching: Option<FunctionWeights>,
}

impl HeapChurn<'_> {
    pub(super) fn operations(&self) -> impl Iterator<Item = &Release> {
        self.group.operations.iter().map(|number| &self.memory.released.releases[*number as usize])
    }

    /// What makes it the same in several launches: for an allocator, who happens to free is not.
    pub(super) fn key(&self) -> (String, ReleaseKind, Option<String>) {
        let is_own = matches!(self.group.place, groups::MemoryManager::Stack(_));
        (self.group.program.clone(), self.group.kind, is_own.then(|| self.stack.folded()))
    }
}
