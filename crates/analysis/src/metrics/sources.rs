//! What a recording can tell: which tables were recorded, and what of them is known.

use crate::memory::background_reclaim::has_events;
use crate::time::off_cpu_times::waits_recorded;
use crate::time::usage::Usage;
use slowpath_recording::Tables;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::{Missing, declared};
use std::collections::BTreeSet;

/// Something that a recording has or has not. In recordings that have it, a figure that is not there is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A launch that got ready.
    Launch,
    /// The kernel's counters of processes.
    Counters,
    /// Page faults.
    Faults,
    /// Their durations.
    FaultTimes,
    /// Their call stacks.
    FaultStacks,
    /// CPU samples and their rate.
    Samples,
    /// Their call stacks.
    SampleStacks,
    /// Calls that change memory.
    MemoryCalls,
    /// Their call stacks.
    MemoryCallStacks,
    /// Intervals off the CPU.
    Waits,
    /// Their call stacks.
    WaitStacks,
    /// The time ledger.
    Ledger,
    /// The kernel's own threads.
    KernelThreads,
    /// What the kernel's threads did for memory, and for whom.
    BackgroundReclaim,
}

impl Source {
    /// All, in display order.
    pub const ALL: [Self; 14] = [
        Self::Launch,
        Self::Counters,
        Self::Faults,
        Self::FaultTimes,
        Self::FaultStacks,
        Self::Samples,
        Self::SampleStacks,
        Self::MemoryCalls,
        Self::MemoryCallStacks,
        Self::Waits,
        Self::WaitStacks,
        Self::Ledger,
        Self::KernelThreads,
        Self::BackgroundReclaim,
    ];

    /// What cannot be compared without it.
    pub fn words(self) -> &'static str {
        self.declaration().name
    }

    /// What its absence is called, and what it means.
    fn declaration(self) -> &'static Missing {
        match self {
            Self::Launch => &declared::LAUNCH,
            Self::Counters => &declared::COUNTERS,
            Self::Faults => &declared::FAULTS,
            Self::FaultTimes => &declared::FAULT_TIMES,
            Self::FaultStacks => &declared::FAULT_STACKS,
            Self::Samples => &declared::SAMPLES,
            Self::SampleStacks => &declared::SAMPLE_STACKS,
            Self::MemoryCalls => &declared::MEMORY_CALLS,
            Self::MemoryCallStacks => &declared::MEMORY_CALL_STACKS,
            Self::Waits => &declared::OFF_CPU,
            Self::WaitStacks => &declared::WAIT_STACKS,
            Self::Ledger => &declared::LEDGER,
            Self::KernelThreads => &declared::OWN_THREADS,
            Self::BackgroundReclaim => &declared::BACKGROUND_RECLAIM,
        }
    }

    /// What would record it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Launch => "record a command from its start until it is ready",
            Self::Counters => "recordings of this version that ended in order",
            Self::Faults | Self::FaultTimes => "`slowpath doctor` says what stops the recording of faults",
            Self::FaultStacks => "record with --stacks fault",
            Self::Samples | Self::SampleStacks => "record with --sample 997",
            Self::MemoryCalls => "record with --memory-calls",
            Self::MemoryCallStacks => "record with --stacks alloc",
            Self::Waits => "record with --off-cpu",
            Self::WaitStacks => "record with --stacks wait",
            Self::Ledger => "record with --off-cpu, until the recording ends in order",
            Self::KernelThreads => "record with --system",
            Self::BackgroundReclaim => "recordings of this version, where /proc shows the kernel's threads",
        }
    }

    /// Its absence, for this reason.
    pub fn unavailable(self, reason: String) -> Unavailable {
        self.declaration().because(reason, self.remedy())
    }

    /// Whether recording it costs the recorded program something, so that recordings with and without it differ for that reason too.
    pub fn costs_the_target(self) -> bool {
        !matches!(
            self,
            Self::Launch
                | Self::Counters
                | Self::FaultTimes
                | Self::Ledger
                | Self::KernelThreads
                | Self::BackgroundReclaim
        )
    }
}

/// What a recording has, but for the ledger and the kernel's threads, which are seen when they are added up.
pub(super) fn sources(tables: &Tables, usage: &Usage) -> BTreeSet<Source> {
    let manifest = &tables.manifest;
    let ran = |probe: &str| manifest.ran(probe);
    let is_ready = manifest.launch.as_ref().is_some_and(|launch| launch.ready.is_some());
    let faults = ran("fault") || !tables.faults.is_empty();
    let samples = ran("cpu_sample") || !tables.cpu_samples.is_empty();
    let memory = ran("memory") || !tables.memory_calls.is_empty();
    let waits = waits_recorded(tables);
    // Without rows there is nothing that a function could have.
    let has_stacks = |mut rows: Box<dyn Iterator<Item = Option<u32>> + '_>| match rows.next() {
        None => true,
        Some(first) => first.is_some() || rows.any(|stack| stack.is_some()),
    };
    let has = [
        (Source::Launch, is_ready),
        (Source::Counters, usage.total.cpu_time.is_some()),
        (Source::Faults, faults),
        (
            Source::FaultTimes,
            faults && (tables.faults.is_empty() || tables.faults.iter().any(|row| row.duration.is_some())),
        ),
        (Source::FaultStacks, faults && has_stacks(Box::new(tables.faults.iter().map(|row| row.stack)))),
        (Source::Samples, samples && manifest.cpu_sample_hz().is_some()),
        (
            Source::SampleStacks,
            samples
                && manifest.cpu_sample_hz().is_some()
                && has_stacks(Box::new(tables.cpu_samples.iter().map(|row| row.stack))),
        ),
        (Source::MemoryCalls, memory),
        (Source::MemoryCallStacks, memory && has_stacks(Box::new(tables.memory_calls.iter().map(|row| row.stack)))),
        (Source::Waits, waits),
        (Source::BackgroundReclaim, manifest.memory_threads.is_some() && has_events(tables)),
        (Source::WaitStacks, waits && has_stacks(Box::new(tables.off_cpu.iter().map(|row| row.stack)))),
    ];
    has.into_iter().filter(|(_, has)| *has).map(|(source, _)| source).collect()
}
