//! The pattern in one launch, with what its evidence and confidence go by.

use super::cost::Cost;
use super::groups::{Missed, Mode};
use super::prediction::Prediction;
use crate::findings::allocating_stack::AllocatingStack;
use crate::findings::materiality::CostShare;
use crate::findings::memory_use::MemoryUse;
use crate::stacks::function_weights::FunctionWeights;
use slowpath_tables::{Nanos, Quantity};
use std::collections::BTreeMap;

/// The pattern in one launch.
pub(super) struct MissedHugePages<'a> {
    pub(super) memory: &'a MemoryUse<'a>,
    pub(super) group: &'a Missed,
    pub(super) mode: Mode,
    pub(super) cost: Cost,
    /// What huge pages would save, or why that is not known.
    pub(super) prediction: Result<Prediction, &'static str>,
    /// The stack that mapped what costs most of it.
    pub(super) stack: AllocatingStack,
    pub(super) share: CostShare,
    pub(super) touching: Option<FunctionWeights>,
}

impl MissedHugePages<'_> {
    /// How many, for means.
    pub(super) fn spans(&self) -> f64 {
        self.group.spans.len() as f64
    }

    /// The stacks that mapped the memory with the time in its faults, the most costly first.
    pub(super) fn stacks(&self) -> Vec<(usize, Nanos)> {
        stacks(self.group, &self.cost)
    }

    pub(super) fn saving(&self) -> Option<Quantity> {
        self.prediction.ok().map(|prediction| prediction.saving)
    }

    /// What makes it the same in several launches: for an allocator, who happens to call it is not.
    pub(super) fn key(&self) -> (String, Option<String>) {
        let is_own = matches!(self.group.place, crate::findings::heap_trim_churn::groups::MemoryManager::Stack(_));
        (self.group.program.clone(), is_own.then(|| self.stack.folded()))
    }

    pub(super) fn is_material(&self) -> bool {
        let saving =
            self.saving().map(|saving| self.memory.share_of(saving.value, self.group.processes.iter().copied()));
        self.share.is_material() && saving.is_none_or(|saving| saving.is_material())
    }
}

pub(super) fn stacks(group: &Missed, cost: &Cost) -> Vec<(usize, Nanos)> {
    let mut times: BTreeMap<usize, Nanos> = BTreeMap::new();
    for (span, stack) in group.spans.iter().zip(&group.stacks) {
        *times.entry(*stack).or_default() += cost.of_span.get(span).copied().unwrap_or_default();
    }
    let mut stacks: Vec<(usize, Nanos)> = times.into_iter().collect();
    stacks.sort_by_key(|(stack, time)| (std::cmp::Reverse(*time), *stack));
    stacks
}
