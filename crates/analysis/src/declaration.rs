//! What a finding is before anything is found: its name and what people should know of it.
//!
//! Each finding declares itself in its own file; [`crate::findings::ALL`] lists them. `slowpath explain`, the reference page and what a
//! diagnosis says it looked for come from here.

use crate::finding::Finding;
use crate::findings::Observation;
use crate::findings::memory_use::MemoryUse;
use crate::needs::Need;
use crate::stacks::call_stacks::CallStacks;
use crate::threshold::Threshold;

/// Where a finding shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowsIn {
    /// Launches from storage, in a lab.
    ColdLaunches,
    /// Launches with everything in memory.
    WarmLaunches,
    /// The same, and what runs already.
    AnyWork,
}

/// A finding, declared.
pub struct Declaration {
    /// Its name in JSON and on the command line (`cold_file_reads`).
    pub name: &'static str,
    /// Names that it had in earlier versions, the latest first.
    pub former: &'static [&'static str],
    /// What it is, in a few words without a verb: `reads from storage before ready`.
    pub title: &'static str,
    /// What happens.
    pub what: &'static str,
    /// Why that costs time.
    pub why: &'static str,
    /// What helps, and its price.
    pub helps: &'static str,
    /// How to see it with a standard tool.
    pub by_hand: &'static str,
    /// From which cost on it is reported.
    pub threshold: Threshold,
    /// What must be recorded for it to be seen.
    pub needs: &'static [Need],
    /// Where it shows.
    pub shows_in: ShowsIn,
    /// Looks for it.
    pub(crate) find: fn(&Input<'_, '_>) -> Vec<Finding>,
}

impl std::fmt::Debug for Declaration {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// What findings look at.
pub(crate) struct Input<'a, 'found> {
    /// The launches, and what a training launch demanded.
    pub observation: &'a Observation<'a>,
    /// Call stacks of each launch; `None` where none were recorded.
    pub call_stacks: &'a [Option<CallStacks<'a>>],
    /// Use of memory in each launch; `None` where memory calls were not recorded.
    pub memory: &'a [Option<MemoryUse<'a>>],
    /// What those before in [`crate::findings::ALL`] found.
    pub found: &'found [Finding],
}
