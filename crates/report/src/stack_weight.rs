//! What rows with call stacks weigh: the numbers that flame graphs and exports of stacks add up.
//!
//! Owns which weights there are, the rows that have each, and their words. Leaves adding up to those who do it.

use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};

/// What is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// CPU samples.
    Cpu,
    /// Microseconds off the CPU.
    OffCpu,
    /// Page faults.
    Faults,
    /// Microseconds in page faults.
    FaultTime,
    /// Bytes by which mmap, mremap and brk let address spaces grow.
    Allocations,
}

/// Process, stack and weight of a row that has one.
pub(crate) type Weighted = (ProcessKey, Option<u32>, u64);

/// A row that has a weight, with its time.
pub(crate) struct TimedRow {
    /// Its process.
    pub(crate) process: ProcessKey,
    /// Thread id.
    pub(crate) tid: u32,
    /// Its column `stack`.
    pub(crate) stack: Option<u32>,
    /// When it began.
    pub(crate) at: Nanos,
    /// Its weight; of a time also how long it lasted, ns.
    pub(crate) amount: u64,
}

impl Weight {
    /// All, in the order in which one is chosen where none is asked for.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::OffCpu, Self::Faults, Self::FaultTime, Self::Allocations];

    /// The first that `tables` have rows for.
    pub fn first_of(tables: &Tables) -> Option<Self> {
        Self::ALL.into_iter().find(|weight| weight.has_rows(tables))
    }

    /// Whether there are rows for it.
    pub fn has_rows(self, tables: &Tables) -> bool {
        match self {
            Self::Cpu => !tables.cpu_samples.is_empty(),
            Self::OffCpu => !tables.off_cpu.is_empty(),
            Self::Faults => !tables.faults.is_empty(),
            Self::FaultTime => tables.faults.iter().any(|fault| fault.duration.is_some()),
            Self::Allocations => tables.memory_calls.iter().any(|call| call.growth().0 > 0),
        }
    }

    /// The word for `--weight`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Faults => "faults",
            Self::FaultTime => "fault-time",
            Self::Allocations => "allocations",
        }
    }

    /// What it adds up, in a line.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cpu => "Samples of running threads",
            Self::OffCpu => "Off-CPU time of threads, in microseconds",
            Self::Faults => "Page faults",
            Self::FaultTime => "Microseconds in page faults",
            Self::Allocations => "Bytes by which mmap, mremap and brk let address spaces grow",
        }
    }

    /// The rows that have it.
    pub(crate) fn counted(self) -> &'static str {
        match self {
            Self::Cpu => "CPU samples",
            Self::OffCpu => "intervals off the CPU",
            Self::Faults => "page faults",
            Self::FaultTime => "page faults with a duration",
            Self::Allocations => "calls that let an address space grow",
        }
    }

    /// How they are recorded.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::Cpu => "record with --sample 1000",
            Self::OffCpu => "record with --off-cpu, or --stacks wait",
            Self::Faults | Self::FaultTime => "`slowpath doctor` says what stops the recording of faults",
            Self::Allocations => "record with --memory-calls, or --stacks alloc",
        }
    }

    /// What the numbers count.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Cpu => "CPU samples",
            Self::OffCpu => "microseconds off the CPU",
            Self::Faults => "page faults",
            Self::FaultTime => "microseconds in page faults",
            Self::Allocations => "bytes",
        }
    }

    /// How many of the rows' own units make one of the output.
    pub(crate) fn scale(self) -> u64 {
        if matches!(self, Self::OffCpu | Self::FaultTime) { 1000 } else { 1 }
    }

    /// The rows that have the weight, in ns where it is a time.
    pub(crate) fn rows(self, tables: &Tables) -> Box<dyn Iterator<Item = Weighted> + '_> {
        Box::new(self.timed_rows(tables).map(|row| (row.process, row.stack, row.amount)))
    }

    /// The same with their times.
    pub(crate) fn timed_rows(self, tables: &Tables) -> Box<dyn Iterator<Item = TimedRow> + '_> {
        macro_rules! timed {
            ($row:expr, $amount:expr) => {
                TimedRow { process: $row.process(), tid: $row.tid, stack: $row.stack, at: $row.ts, amount: $amount }
            };
        }
        match self {
            Self::Cpu => Box::new(tables.cpu_samples.iter().map(|row| timed!(row, 1))),
            Self::OffCpu => Box::new(tables.off_cpu.iter().map(|row| timed!(row, row.duration.0))),
            Self::Faults => Box::new(tables.faults.iter().map(|row| timed!(row, 1))),
            Self::FaultTime => Box::new(tables.faults.iter().filter_map(|row| Some(timed!(row, row.duration?.0)))),
            Self::Allocations => {
                Box::new(tables.memory_calls.iter().map(|row| timed!(row, row.growth().0)).filter(|row| row.amount > 0))
            }
        }
    }
}
