//! What is counted of the whole machine before the first process is followed and after the last was: page faults, and the work of
//! the kernel's threads for memory. One look at `/proc/vmstat` serves both.

use crate::fault_counters::FaultCounters;
use crate::memory_threads::{MemoryCounters, MemoryThreadPids};
use slowpath_recording::{MachineFaults, MemoryThreads};

/// Counters of one moment.
pub(crate) struct MachineCounters {
    faults: Option<FaultCounters>,
    memory: Option<MemoryCounters>,
}

impl MachineCounters {
    /// Those of this moment. `writer` is a process of the recorder's own.
    pub(crate) fn now(writer: Option<u32>, threads: &MemoryThreadPids) -> Self {
        let read = || std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let (faults, vmstat) = FaultCounters::now(writer, read);
        Self { faults, memory: threads.counters(&vmstat) }
    }

    /// By how much faults grew.
    pub(crate) fn faults_since(&self, before: &Self) -> Option<MachineFaults> {
        Some(self.faults?.since(&before.faults?))
    }

    /// What the threads did.
    pub(crate) fn memory_since(&self, before: &Self) -> Option<MemoryThreads> {
        Some(self.memory.as_ref()?.since(before.memory.as_ref()?))
    }
}
