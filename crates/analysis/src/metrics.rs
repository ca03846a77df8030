//! What one recording of a workload cost, figure by figure, so that another recording of it can be laid beside.
//!
//! Owns which figures there are and what each is about: the whole recording, the processes of a program, a function, a row of the
//! time ledger, a finding. Nothing that differs between two runs of the same program is part of what a figure is about: no pid, no
//! address. A figure that could have been there and was not is zero; what was not recorded is no figure but a [`Source`] that is
//! missing, so that the two are never mixed up ([`sources`]).
//!
//! Leaves the figures' own meaning to the modules that compute them ([`crate::time::usage`], [`crate::stacks::attribution`],
//! [`crate::time::ledger`], [`crate::findings`]), each of which looks at the recording once, and the comparison to
//! [`crate::recording_comparison`].

mod collect;
mod sources;

pub use collect::{recorded_metrics, takes_memory};
pub use sources::Source;

use crate::stacks::attribution::AttributedFunction;
use crate::time::ledger::Category;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Host;
use slowpath_tables::{Losses, Nanos, Quantity, Unavailable, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// From release of exec to ready; of a launch that was ready at its exit, the whole run. Ms.
    TimeToReady,
    /// Time that threads ran, by the scheduler's clock. Ms.
    CpuTime,
    /// The same as CPU samples tell it: their number by their rate. Ms.
    SampledCpuTime,
    /// The part of it in the kernel. Ms.
    SampledKernelTime,
    /// Time that kernel threads ran, by the scheduler's clock; part of `cpu_time`. Ms.
    KernelThreadTime,
    /// CPU time of the kernel's threads for memory (kswapd, kcompactd, khugepaged) that recorded processes caused. Not part of their
    /// `cpu_time`; where the whole system was recorded, part of `kernel_thread_time`. Ms.
    #[serde(alias = "deferred_memory_cost")]
    BackgroundReclaim,
    /// Recorded page faults.
    Faults,
    /// Page faults by the kernel's counters of the processes, also those that raise no event.
    FaultsByKernel,
    /// Time in recorded page faults, the zeroing of pages included. Ms.
    FaultTime,
    /// Calls of mmap, mremap and brk that let an address space grow, but for reservations (`MAP_NORESERVE`), which are no memory.
    Allocations,
    /// Bytes by which they did.
    AllocatedBytes,
    /// Time in these calls, and in advice that gives nothing back. Ms.
    MapTime,
    /// Calls that give memory back: munmap, brk that shrinks the heap, advice that drops pages.
    Releases,
    /// Time in them. Ms.
    ReleaseTime,
    /// Time off the CPU, all threads together: mostly waiting for work. Ms.
    OffCpuTime,
    /// The part of it in which threads could have run and waited for a CPU. Ms.
    RunnableTime,
}

impl Measure {
    /// All, in display order.
    pub const ALL: [Self; 16] = [
        Self::TimeToReady,
        Self::CpuTime,
        Self::SampledCpuTime,
        Self::SampledKernelTime,
        Self::KernelThreadTime,
        Self::Faults,
        Self::FaultsByKernel,
        Self::FaultTime,
        Self::Allocations,
        Self::AllocatedBytes,
        Self::MapTime,
        Self::Releases,
        Self::ReleaseTime,
        Self::BackgroundReclaim,
        Self::OffCpuTime,
        Self::RunnableTime,
    ];

    /// Unit of its figures.
    pub fn unit(self) -> Unit {
        match self {
            Self::Faults | Self::FaultsByKernel | Self::Allocations | Self::Releases => Unit::Count,
            Self::AllocatedBytes => Unit::Bytes,
            _ => Unit::Ms,
        }
    }

    /// What must have been recorded for the figure of a recording or of a program.
    pub fn source(self) -> Source {
        match self {
            Self::TimeToReady => Source::Launch,
            Self::CpuTime | Self::FaultsByKernel => Source::Counters,
            Self::SampledCpuTime | Self::SampledKernelTime => Source::Samples,
            Self::KernelThreadTime => Source::KernelThreads,
            Self::BackgroundReclaim => Source::BackgroundReclaim,
            Self::Faults => Source::Faults,
            Self::FaultTime => Source::FaultTimes,
            Self::Allocations | Self::AllocatedBytes | Self::MapTime | Self::Releases | Self::ReleaseTime => {
                Source::MemoryCalls
            }
            Self::OffCpuTime | Self::RunnableTime => Source::Waits,
        }
    }

    /// What must have been recorded for the figure of a function; `None` for what functions have not.
    pub fn sources_of_functions(self) -> Option<[Source; 2]> {
        let stacks = match self {
            Self::SampledCpuTime => Source::SampleStacks,
            Self::Faults | Self::FaultTime => Source::FaultStacks,
            Self::Allocations | Self::AllocatedBytes | Self::Releases | Self::ReleaseTime => Source::MemoryCallStacks,
            Self::OffCpuTime => Source::WaitStacks,
            _ => return None,
        };
        Some([self.source(), stacks])
    }

    /// Whether it is reported where it is zero everywhere: of a hidden cost that is an answer.
    pub fn is_reported_when_zero(self) -> bool {
        self == Self::BackgroundReclaim
    }

    /// Whether twice the time makes twice the figure.
    pub fn grows_with_time(self) -> bool {
        self != Self::TimeToReady
    }
}

/// What makes a finding the same one in two recordings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingKey {
    /// Name of the bad pattern.
    pub name: String,
    /// Program. Foreign text.
    pub program: String,
    /// Function, where the finding names one. Foreign text.
    pub function: Option<String>,
}

/// A finding's cost in one recording; that of several with the same key together.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingCost {
    /// Its title. Foreign text.
    pub title: String,
    /// Its cost.
    pub cost: Quantity,
    /// Whether twice the time makes twice the cost.
    pub grows_with_time: bool,
}

/// A row of the time ledger; `None` for what is unexplained.
pub type LedgerKey = Option<Category>;

/// Everything that one recording cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedMetrics {
    /// Command line, or what was recorded in words.
    pub command: Vec<String>,
    /// The program: base name of the command, or the words without pids. Foreign text.
    pub program: String,
    /// How long it is: to ready for a launch that got ready, else to the end of recording, or of its rows.
    pub length: Nanos,
    /// Whether it is a launch that got ready: a whole piece of work, however long it took.
    pub is_launch: bool,
    /// Of the whole recording; what was not recorded is missing.
    pub totals: BTreeMap<Measure, f64>,
    /// By program; names of kernel threads are in brackets. Foreign text.
    pub programs: BTreeMap<(String, Measure), f64>,
    /// By charged function.
    pub functions: BTreeMap<(AttributedFunction, Measure), f64>,
    /// Time of all threads by program and row, ms.
    pub ledger: BTreeMap<(String, LedgerKey), f64>,
    /// Findings.
    pub findings: BTreeMap<FindingKey, FindingCost>,
    /// What was recorded.
    pub sources: BTreeSet<Source>,
    /// Probes that ran.
    pub probes: BTreeSet<String>,
    /// Lost events by kind.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
    /// What makes figures too small, one sentence each, without a full stop.
    pub doubts: Vec<String>,
    /// The machine.
    pub host: Host,
}
