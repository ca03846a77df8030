//! What stacks weigh in a recording: which weights flame graphs have, and the rows of one added up by program and stack.

use super::names::{NamedStacks, Names};
use crate::stack_weight::Weighted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_analysis::stacks::call_stacks::StackPath;
use slowpath_tables::ProcessKey;
use std::collections::HashMap;

/// What is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlameWeight {
    /// CPU samples.
    CpuSamples,
    /// Time off the CPU, waits for work included, ns.
    OffCpu,
    /// Time in page faults of known duration, ns.
    FaultTime,
    /// Bytes by which mmap, mremap and brk let address spaces grow.
    Allocated,
}

/// The rows of a weight, those of one program and stack together.
pub(super) struct Sums {
    /// By frame of the process and path, sorted.
    pub(super) of_stack: Vec<((u32, Option<StackPath>), u64)>,
    /// The frames of processes.
    pub(super) of_process: HashMap<ProcessKey, u32>,
    pub(super) total: u64,
    pub(super) has_rows: bool,
    pub(super) has_stacks: bool,
}

/// Adds up the rows of a weight.
pub(super) fn sums(
    rows: impl Iterator<Item = Weighted>,
    stacks: &NamedStacks<'_, '_>,
    processes: &Processes,
    names: &mut Names,
) -> Sums {
    let mut of_process: HashMap<ProcessKey, u32> = HashMap::new();
    let mut sums: HashMap<(u32, Option<StackPath>), u64> = HashMap::new();
    let (mut total, mut has_rows, mut has_stacks) = (0u64, false, false);
    for (process, stack, amount) in rows {
        let process = *of_process.entry(process).or_insert_with(|| names.process(&processes.name(process)));
        let path = stacks.path(stack);
        (has_rows, has_stacks) = (true, has_stacks || path.is_some());
        total = total.saturating_add(amount);
        let sum = sums.entry((process, path)).or_default();
        *sum = sum.saturating_add(amount);
    }
    let mut of_stack: Vec<_> = sums.into_iter().collect();
    of_stack.sort_unstable_by_key(|(key, _)| *key);
    Sums { of_stack, of_process, total, has_rows, has_stacks }
}
