//! What the memory calls of a launch say, derived once for the findings about memory.
//!
//! Owns which of them has what, so that no fault and no call is counted twice. Blocks that are mapped again and again have all
//! faults taken in them but for those that forks caused, and advice that gave pages of theirs back; what is given back and touched
//! again elsewhere is what [`ReleasedPages`] says. Of the faults that are left, those in blocks of which pages were never used are
//! [`super::unused_touched_pages`]'s, where that is a finding. Spans that would fit a huge page have the first touches of their
//! pages, where none of the others has a fault in them and no fork caused it.
//!
//! Pages that were never used come before huge pages that were missed: they need not be touched at all, and a huge page would only
//! make what is not needed cheaper. A block belongs to one of the two as a whole: how many of its pages were not used comes from a
//! sample, and which ones is not known. Where too little was not used for a finding, its spans are those of any other block.
//!
//! Copies into and out of blocks have the samples in user code, and no fault.

use super::allocating_stack::AllocatingStacks;
use super::buffer_copied_back::filled_blocks::BlockFaults;
use super::buffer_copied_back::round_trips::{RoundTrip, round_trips};
use super::copying_code;
use super::heap_trim_churn::groups::{self as churn, Churn};
use super::materiality::{CostShare, CpuTimes};
use super::thp_missed::groups::{self as missed, Missed, Mode};
use super::transient_large_allocation::groups::{self as transient, Group};
use super::unused_touched_pages::cost::{self as oversized_cost, Cost as OversizedCost};
use super::unused_touched_pages::groups::{self as oversized, Oversized};
use super::unused_touched_pages::is_one;
use crate::launch_facts::LaunchFacts;
use crate::memory::fork_faults;
use crate::memory::huge_page_spans::{self, Spans};
use crate::memory::memory_blocks::{self, MemoryBlocks};
use crate::memory::memory_events::MemoryEvents;
use crate::memory::released_pages::{self, ReleasedPages};
use crate::stacks::call_stacks::CallStacks;
use crate::time::off_cpu_times::{self, FaultTimes, OffCpuTimes};
use crate::time::usage;
use slowpath_tables::{Nanos, ProcessKey};
use std::cell::OnceCell;

/// The memory calls of one launch.
pub(crate) struct MemoryUse<'a> {
    /// The launch.
    pub facts: &'a LaunchFacts<'a>,
    /// Its call stacks.
    pub call_stacks: &'a CallStacks<'a>,
    /// Those of memory calls.
    pub stacks: AllocatingStacks<'a>,
    /// What of the durations of its faults and calls is no cost of theirs.
    pub off_cpu: OffCpuTimes,
    /// Blocks that it mapped.
    pub blocks: MemoryBlocks,
    /// Those of them that were mapped, touched and released again and again.
    pub transient: Vec<Group>,
    /// Pages that it gave back, but for those of such blocks.
    pub released: ReleasedPages,
    /// Those of them that were given back and touched again, over and over.
    pub churn: Vec<Churn>,
    /// Other blocks, of which so many pages that were touched were never used that it is a finding, each group with its cost.
    pub oversized: Vec<(Oversized, OversizedCost)>,
    /// Spans that would fit a huge page; empty where the machine has none, or it is not known.
    pub spans: Spans,
    /// Those of them that stay and were touched densely, page by page.
    pub missed: Vec<Missed>,
    /// To whom the machine gives huge pages; `None` where that is not known, and where it has none.
    pub huge_pages: Option<Mode>,
    /// Blocks that data were copied into and back out of.
    pub round_trips: Vec<RoundTrip>,
    /// CPU time of each process, once somebody has asked for it.
    cpu_times: OnceCell<CpuTimes>,
}

impl<'a> MemoryUse<'a> {
    /// Derives it.
    pub fn new(facts: &'a LaunchFacts<'a>, call_stacks: &'a CallStacks<'a>) -> Self {
        Self::of(facts, call_stacks, is_one)
    }

    /// The same; `is_oversized` says from what on never used pages are a finding.
    fn of(
        facts: &'a LaunchFacts<'a>,
        call_stacks: &'a CallStacks<'a>,
        is_oversized: fn(&OversizedCost, &CostShare) -> bool,
    ) -> Self {
        let tables = &facts.tables;
        let mut stacks = AllocatingStacks::new(call_stacks);
        let events = MemoryEvents::new(tables);
        let forks = fork_faults::follow(&events);
        let off_cpu = off_cpu_times::follow(tables);
        let blocks = memory_blocks::follow(&events, &forks, &off_cpu);
        let transient = transient::groups(&blocks.blocks, &facts.processes, &mut stacks);
        let mut is_transient = vec![false; blocks.blocks.len()];
        transient.iter().flat_map(|group| &group.operations).for_each(|block| is_transient[*block as usize] = true);
        let theirs = blocks.discarded.iter().filter(|(_, block)| is_transient[*block as usize]);
        let theirs: Vec<usize> = theirs.map(|(call, _)| *call).collect();
        let released = released_pages::follow(&events, &theirs, &forks, &off_cpu);
        let churn = churn::groups(&released.releases, &facts.processes, &mut stacks);
        let mut is_churned = vec![false; released.releases.len()];
        churn.iter().flat_map(|churn| &churn.operations).for_each(|release| is_churned[*release as usize] = true);
        let of = |list: &[Option<u32>], fault: usize| list.get(fault).copied().flatten();
        let is_counted =
            |fault: usize| of(&released.of_fault, fault).is_some_and(|release| is_churned[release as usize]);
        let is_other = |block: u32| is_transient[block as usize];
        let oversized = oversized::groups(tables, &blocks, &facts.processes, &mut stacks, is_other, is_counted);
        let cpu_times = OnceCell::new();
        let faults = FaultTimes { rows: &tables.faults, off_cpu: &off_cpu };
        let oversized = oversized.into_iter().filter_map(|group| {
            let cost = oversized_cost::cost(&group, &blocks, &faults)?;
            let times = cpu_times.get_or_init(|| usage::own_cpu_times(facts));
            let share = CostShare::new(cost.total.value, group.processes.iter().copied(), times, facts);
            is_oversized(&cost, &share).then_some((group, cost))
        });
        let oversized: Vec<_> = oversized.collect();
        let mut counted_whole = is_transient;
        oversized.iter().flat_map(|(group, _)| &group.blocks).for_each(|block| counted_whole[*block as usize] = true);
        let is_others = |fault: usize| {
            forks.holds(fault)
                || of(&released.of_fault, fault).is_some()
                || of(&blocks.of_fault, fault).is_some_and(|block| counted_whole[block as usize])
        };
        let huge_pages = tables.manifest.host.huge_pages.as_ref().and_then(|setting| Mode::of(&setting.enabled));
        let size = huge_page_spans::size(&tables.manifest).filter(|_| huge_pages.is_some());
        let spans = size.map(|size| huge_page_spans::follow(&events, size, is_others)).unwrap_or_default();
        let missed = huge_pages.map(|mode| missed::groups(&spans, mode, &facts.processes, &mut stacks));
        let missed = missed.unwrap_or_default();
        let copies = copying_code::copies(tables, &blocks, call_stacks);
        let faults = BlockFaults { faults: &tables.faults, of_fault: &blocks.of_fault };
        let round_trips = round_trips(&copies, &blocks.blocks, faults, &facts.processes, &mut stacks);
        Self {
            facts,
            call_stacks,
            stacks,
            off_cpu,
            blocks,
            transient,
            released,
            churn,
            oversized,
            spans,
            missed,
            huge_pages,
            round_trips,
            cpu_times,
        }
    }

    /// Its faults.
    pub fn faults(&self) -> FaultTimes<'_> {
        FaultTimes { rows: &self.facts.tables.faults, off_cpu: &self.off_cpu }
    }

    fn cpu_times(&self) -> &CpuTimes {
        self.cpu_times.get_or_init(|| usage::own_cpu_times(self.facts))
    }

    /// A cost in ms beside the CPU time of those who pay it.
    pub fn share_of(&self, cost: f64, processes: impl Iterator<Item = ProcessKey>) -> CostShare {
        CostShare::new(cost, processes, self.cpu_times(), self.facts)
    }

    /// CPU time of processes, without what recording took of it; `None` where that of one is not known.
    pub fn cpu_time_of(&self, mut processes: impl Iterator<Item = ProcessKey>) -> Option<Nanos> {
        let times = self.cpu_times();
        processes.try_fold(Nanos(0), |sum, process| Some(sum + times.get(&process).copied().flatten()?))
    }
}

#[cfg(test)]
mod tests;
