//! The pattern in one launch, with what its evidence and confidence go by.

use crate::findings::materiality::CostShare;
use crate::launch_facts::LaunchFacts;
use crate::memory::background_reclaim::{BackgroundReclaim, Task, ThreadCost};
use slowpath_tables::{ProcessKey, Quantity};
use std::collections::BTreeSet;

/// The pattern in one launch.
pub(super) struct ReclaimCost<'a> {
    pub(super) facts: &'a LaunchFacts<'a>,
    pub(super) memory: BackgroundReclaim<'a>,
    pub(super) program: String,
    pub(super) processes: BTreeSet<ProcessKey>,
    pub(super) threads: Vec<ThreadCost>,
    pub(super) cost: Quantity,
    pub(super) share: CostShare,
}

impl ReclaimCost<'_> {
    /// Threads of which the program caused something.
    pub(super) fn charged(&self) -> impl Iterator<Item = &ThreadCost> {
        self.threads.iter().filter(|thread| thread.cost.value > 0.0)
    }

    pub(super) fn charges(&self, task: Task) -> bool {
        self.charged().any(|thread| thread.task == task)
    }
}
