//! What the kernel's own threads for memory did while a recording went on, and the kernel's counters that tell why.
//!
//! Owns the types in the manifest. Leaves reading them to `capture`, and who caused it to `analysis`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Nanos;
use std::collections::BTreeMap;

/// The kernel's threads for memory, of the whole machine, from just before the first process was followed until just after the last
/// was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryThreads {
    /// The threads: `kswapd<node>` (reclaims pages), `kcompactd<node>` (moves pages together), `khugepaged` (makes huge pages of
    /// small ones), `ksmd` (merges equal pages).
    pub threads: Vec<MemoryThread>,
    /// By how much counters of `/proc/vmstat` grew, by their names there: those of reclaim, compaction and huge pages that the
    /// kernel has. `pgalloc` is the sum of all zones (`pgalloc_*`): pages that anybody got.
    pub counters: BTreeMap<String, u64>,
}

/// One of these threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryThread {
    /// Its name, as `/proc/PID/comm` has it.
    pub name: String,
    /// Its pid.
    pub pid: u32,
    /// CPU time that it used meanwhile (the first number of `/proc/PID/schedstat`).
    pub cpu_time: Nanos,
}

impl MemoryThreads {
    /// By how much a counter grew; `None` for one that the kernel has not.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }
}
