//! Materiality threshold for memory findings.

use crate::launch_facts::LaunchFacts;
use crate::threshold::{Threshold, Whole};
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::BTreeMap;

/// Least cost: below, a handful of preempted faults could be all of it.
pub const LEAST_COST: Nanos = Nanos(1_000_000);

/// Least share of the CPU time of the processes concerned (of the length of the recording where that is not known). A change
/// of 2 % of a quiet program's CPU time takes some 20 interleaved pairs of runs to be seen, one of 0.5 % some 320, which
/// nobody runs. The video call that taught these patterns paid 1.9 % for one.
pub const LEAST_SHARE: f64 = 0.005;

/// Both.
pub const THRESHOLD: Threshold =
    Threshold { cost: LEAST_COST, share: LEAST_SHARE, of: Whole::CpuOfItsProcesses, condition: None };

/// CPU time of each process, where it is known.
pub(crate) type CpuTimes = BTreeMap<ProcessKey, Option<Nanos>>;

/// A cost beside what the processes used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostShare {
    /// In ms.
    cost: f64,
    /// Share of the CPU time of the processes, or of the length of the recording.
    pub share: f64,
    is_of_cpu: bool,
}

impl CostShare {
    /// Of a cost in ms that these processes pay. Where waits were not recorded, durations are of the clock, so a cost can be more than the
    /// CPU time of threads that were displaced in it; where they were, waiting for storage and for memory is. No more than all is said.
    pub fn new(
        cost: f64,
        processes: impl Iterator<Item = ProcessKey>,
        times: &CpuTimes,
        facts: &LaunchFacts<'_>,
    ) -> Self {
        let cpu: Option<Nanos> = processes.map(|one| times.get(&one).copied().flatten()).sum();
        let cpu = cpu.filter(|cpu| cpu.0 > 0);
        let whole = cpu.unwrap_or(facts.ended - facts.released);
        Self { cost, share: (cost * 1e6 / whole.0.max(1) as f64).min(1.0), is_of_cpu: cpu.is_some() }
    }

    /// Whether it matters.
    pub fn is_material(&self) -> bool {
        THRESHOLD.is_met_by_share(self.cost, self.share)
    }

    /// `11.9 % of its CPU time`.
    pub fn words(&self) -> String {
        let of = if self.is_of_cpu { "its CPU time" } else { "the recording" };
        format!("{:.1} % of {of}", self.share * 100.0)
    }

    /// Of what, as one word.
    pub fn of(&self) -> &'static str {
        if self.is_of_cpu { "cpu_time" } else { "recording" }
    }
}
