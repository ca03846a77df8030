//! What a critical path consists of: its pieces, and what each thread has of it.

use crate::time::ledger::{Account, Category};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Nanos, ProcessKey};

/// Who ended a wait that is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// No task: a timer, a device.
    Interrupt,
    /// A task that is not recorded: the kernel's own, or of another program.
    NotRecorded,
    /// Nobody: it goes on beyond that moment.
    NotOver,
    /// By the rows, a thread that did not run at that moment, or that was itself woken by this one at that moment.
    Contradicted,
}

/// A piece of the path: one thread that did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Process of the thread.
    pub process: ProcessKey,
    /// Thread id.
    pub tid: u32,
    /// Begin.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
    /// What it did; [`Category::OnCpu`] for all the time that it ran. `None` where nothing was recorded of it.
    pub category: Option<Category>,
    /// Who ended it, for a wait.
    pub ended_by: Option<EndedBy>,
}

impl Step {
    /// Its length.
    pub fn time(&self) -> Nanos {
        self.to - self.from
    }

    /// Whether it is a wait for others, or for a time, that no recorded task ended.
    pub(crate) fn is_idle(&self) -> bool {
        let is_outside = self.ended_by.is_some_and(|ended_by| ended_by != EndedBy::Contradicted);
        is_outside && self.category.is_some_and(Category::is_idle)
    }
}

/// What one thread has of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadOnPath {
    /// Its process.
    pub process: ProcessKey,
    /// Thread id.
    pub tid: u32,
    /// Its last known name. Foreign text.
    pub name: Option<String>,
    /// Its time on the path by category.
    pub account: Account,
    /// Its time on the path of which nothing was recorded.
    pub unexplained: Nanos,
}

impl ThreadOnPath {
    /// All its time on the path.
    pub fn time(&self) -> Nanos {
        self.account.total() + self.unexplained
    }
}
