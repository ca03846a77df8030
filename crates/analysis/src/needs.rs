//! What must be recorded for a finding to be seen.
//!
//! Owns which rows and counters that can be, how they are called for people, and whether a recording has all of them. Which a finding needs
//! is in its declaration.

use crate::memory::background_reclaim::has_events;
use crate::time::off_cpu_times::waits_recorded;
use slowpath_recording::Tables;

/// Something that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Page faults.
    Faults,
    /// Mappings of files and memory.
    Mappings,
    /// Insertions into the page cache.
    PageCache,
    /// Reads of files by system calls.
    Reads,
    /// Opens of files.
    Opens,
    /// When threads did not run.
    Waits,
    /// Calls that map, unmap and advise memory.
    MemoryCalls,
    /// Whether pages were used, as they were given back.
    PageContents,
    /// Samples of what runs.
    CpuSamples,
    /// Who caused work of the kernel's threads for memory, and what these ran.
    KernelThreads,
}

impl Need {
    /// For people.
    fn words(self) -> &'static str {
        match self {
            Self::Faults => "page faults",
            Self::Mappings => "mappings",
            Self::PageCache => "page cache",
            Self::Reads => "reads",
            Self::Opens => "opens",
            Self::Waits => "waits",
            Self::MemoryCalls => "memory calls",
            Self::PageContents => "page contents",
            Self::CpuSamples => "CPU samples",
            Self::KernelThreads => "kernel threads for memory",
        }
    }

    /// The table that has it, by which lost rows are counted.
    fn table(self) -> &'static str {
        match self {
            Self::Faults => "faults",
            Self::Mappings => "mappings",
            Self::PageCache => "page_cache",
            Self::Reads => "reads",
            Self::Opens => "opens",
            Self::Waits => "off_cpu",
            Self::MemoryCalls => "memory_calls",
            Self::PageContents => "page_contents",
            Self::CpuSamples => "cpu_samples",
            Self::KernelThreads => "memory_work",
        }
    }

    fn is_recorded(self, tables: &Tables) -> bool {
        let ran = |probe: &str| tables.manifest.ran(probe);
        match self {
            Self::Faults => !tables.faults.is_empty() || ran("fault"),
            Self::Mappings => !tables.mappings.is_empty() || ran("mapping"),
            Self::PageCache => !tables.page_cache.is_empty() || ran("page_cache"),
            Self::Reads => !tables.reads.is_empty() || ran("read"),
            Self::Opens => !tables.opens.is_empty() || ran("open"),
            Self::Waits => waits_recorded(tables),
            Self::MemoryCalls => !tables.memory_calls.is_empty() || ran("memory"),
            Self::PageContents => !tables.page_contents.is_empty() || ran("page_content"),
            Self::CpuSamples => {
                tables.manifest.cpu_sample_hz().is_some() && (!tables.cpu_samples.is_empty() || ran("cpu_sample"))
            }
            Self::KernelThreads => tables.manifest.memory_threads.is_some() && has_events(tables),
        }
    }

    /// Why a recording does not have all of it: `page faults: 12 lost`. `None` where it has.
    pub fn lacks(self, tables: &Tables) -> Option<String> {
        if !self.is_recorded(tables) {
            return Some(format!("{}: not recorded", self.words()));
        }
        let lost = tables.manifest.losses.of(self.table());
        (lost > 0).then(|| format!("{}: {lost} lost", self.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::{Manifest, Probe, ProbeState};

    #[test]
    fn what_was_not_recorded_or_lost_is_lacking_and_what_had_no_rows_is_not() {
        let probe = |name: &str, state| Probe { name: name.to_owned(), state };
        let mut manifest = Manifest {
            probes: vec![probe("fault", ProbeState::Attached), probe("open", ProbeState::Unavailable)],
            ..Manifest::default()
        };
        manifest.losses.add("writer_behind.faults", 12);
        manifest.losses.add("reads", 0);
        let tables = Tables { manifest, ..Tables::default() };
        assert_eq!(Need::Faults.lacks(&tables).as_deref(), Some("page faults: 12 lost"));
        assert_eq!(Need::Opens.lacks(&tables).as_deref(), Some("opens: not recorded"));
        assert_eq!(Need::Waits.lacks(&tables).as_deref(), Some("waits: not recorded"));
        let mut whole = tables;
        whole.manifest.losses.0.clear();
        assert_eq!(Need::Faults.lacks(&whole), None);
    }
}
