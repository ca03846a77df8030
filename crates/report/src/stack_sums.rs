//! Rows with call stacks as sums by process and stack, for exports that hold totals.

use crate::stack_weight::Weight;
use slowpath_analysis::processes::Processes;
use slowpath_analysis::stacks::call_stacks::{CallStacks, StackPath};
use slowpath_recording::Tables;
use slowpath_tables::ProcessKey;
use std::collections::BTreeMap;

/// Totals of one weight or several, with the names of the processes.
pub struct StackSums {
    /// The weights, in the order of the values.
    pub weights: Vec<Weight>,
    /// Names of processes. Foreign text.
    pub names: Vec<String>,
    /// Of each process, by its number in `names`, and stack, the values of all weights.
    pub sums: BTreeMap<(u32, Option<StackPath>), Vec<u64>>,
}

impl StackSums {
    /// Adds up the weights that `tables` have rows for.
    pub fn new(tables: &Tables, stacks: &CallStacks<'_>) -> Self {
        let weights: Vec<Weight> = Weight::ALL.into_iter().filter(|weight| weight.has_rows(tables)).collect();
        let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
        let mut number_of: BTreeMap<ProcessKey, u32> = BTreeMap::new();
        let mut names = Vec::new();
        let mut sums: BTreeMap<(u32, Option<StackPath>), Vec<u64>> = BTreeMap::new();
        for (at, weight) in weights.iter().enumerate() {
            for (process, stack, amount) in weight.rows(tables) {
                let number = *number_of.entry(process).or_insert_with(|| {
                    names.push(processes.name(process));
                    names.len() as u32 - 1
                });
                let values = sums.entry((number, stacks.path(stack))).or_insert_with(|| vec![0; weights.len()]);
                values[at] = values[at].saturating_add(amount);
            }
        }
        Self { weights, names, sums }
    }
}
