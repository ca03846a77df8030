//! What the operations of a group cost, and what keeping the blocks would save.
//!
//! **Value.** Time in the faults in them, in mmap and mremap, in munmap and in advice that gives pages back: that which threads ran,
//! where it is known ([`crate::time::off_cpu_times`]).
//!
//! **Interval.** That of the faults ([`crate::findings::fault_sums`]), with those that brought huge pages apart ([`crate::memory::huge_faults`]); at its *low* end calls are of the median duration of their
//! kind too.
//!
//! **Not included** here, and in part in [`super::prediction`]: entering and leaving the kernel at a fault (the clock runs between
//! the two), what zeroing and unmapping displace from caches and address translation, the other CPUs that are interrupted to
//! forget the addresses, and work that the kernel does later elsewhere (giving memory back to its allocator's lists, reclaim,
//! compaction).

use super::groups::Group;
use crate::findings::fault_sums::{FaultSums, per_second, quantile, sorted};
use crate::memory::memory_blocks::{Block, MemoryBlocks};
use crate::time::off_cpu_times::FaultTimes;
use slowpath_tables::{Nanos, Quantity, Unit};

/// The cost of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Faults in all operations.
    pub faults: FaultSums,
    /// Time in mmap and mremap.
    pub map_time: f64,
    /// Time in munmap, and in advice that gives pages back.
    pub release_time: f64,
    /// What threads did not run in these calls, and is in nothing here.
    pub calls_off_cpu: Nanos,
    /// Everything, in ms.
    pub total: Quantity,
    /// Everything of one operation, median, in us.
    pub per_operation: Quantity,
    /// What of that keeping the blocks saves, in ms, by the durations alone.
    pub saving: Quantity,
    /// The same where a fault is not taken to be longer than most ([`FaultSums::undisturbed`]), in ms: what comes nearest to CPU
    /// time, which is what keeping the blocks saves.
    pub undisturbed_saving: f64,
    /// Size of a block, median.
    pub length: u64,
    /// Bytes that were mapped.
    pub mapped: u64,
    /// Bytes of pages that faults brought.
    pub touched: u64,
    /// Faults that brought huge pages ([`crate::memory::huge_faults`]).
    pub huge_faults: u64,
    /// Lifetimes: median, and what a twentieth exceeds.
    pub lifetime: (Nanos, Nanos),
    /// Operations a second, from the first to the last.
    pub per_second: Option<f64>,
    /// Whether faults can have brought huge pages, and `touched` counts them so.
    pub perhaps_huge: bool,
    /// Operations that a thread began and another one ended.
    pub across_threads: u64,
}

/// For each group the faults in its operations: numbers of rows, in their order.
pub(crate) fn faults_of(groups: &[Group], memory: &MemoryBlocks) -> Vec<Vec<usize>> {
    let mut group_of_block: Vec<Option<usize>> = vec![None; memory.blocks.len()];
    for (number, group) in groups.iter().enumerate() {
        group.operations.iter().for_each(|block| group_of_block[*block as usize] = Some(number));
    }
    let mut faults = vec![Vec::new(); groups.len()];
    for (number, block) in memory.of_fault.iter().enumerate() {
        if let Some(group) = block.and_then(|block| group_of_block[block as usize]) {
            faults[group].push(number);
        }
    }
    faults
}

/// Adds up a group; `faults` are those of the recording, and `numbers` the rows of the group.
pub(crate) fn cost(group: &Group, memory: &MemoryBlocks, faults: &FaultTimes<'_>, numbers: &[usize]) -> Cost {
    let block = |number: &u32| &memory.blocks[*number as usize];
    let blocks = || group.operations.iter().map(block);
    let sum = |of: fn(&Block) -> u64| blocks().map(of).fold(0u64, u64::saturating_add);
    let of_kind = |is_meant: bool| {
        FaultSums::of(numbers.iter().copied().filter(|number| memory.is_huge(*number) == is_meant), faults)
    };
    let (faults, huge) = (of_kind(false), of_kind(true));
    let huge_faults = huge.count;
    let faults = faults.with(huge);
    let (map_time, release_time) = (sum(|block| block.map_time.0) as f64, sum(|block| block.release_time.0) as f64);
    let operations = group.operations.len() as f64;

    let value = faults.time() + map_time + release_time;
    let median_of = |of: fn(&Block) -> u64| quantile(&sorted(blocks().map(of)), 0.5) as f64;
    let calls = (median_of(|block| block.map_time.0) + median_of(|block| block.release_time.0)) * operations;
    let low = (faults.low() + calls).min(value);
    let high = faults.high() + map_time + release_time;

    let of_block = |block: &Block| block.time().0 as f64 + block.untimed as f64 * faults.mean;
    let first: f64 = group.first_uses(&memory.blocks).map(|number| of_block(block(&number))).sum();
    let left = 1.0 - group.peak() as f64 / operations.max(1.0);
    let saved = (value - first).max(0.0);
    let undisturbed = (faults.undisturbed() + map_time + release_time) / value.max(1.0);
    let ms = |value: f64, low: f64, high: f64| Quantity::interval(value / 1e6, low / 1e6, high / 1e6, Unit::Ms);

    let lifetimes = sorted(blocks().filter_map(|block| Some(block.lifetime()?.0)));
    let lengths = sorted(blocks().map(|block| block.length.0));
    let costs = sorted(blocks().map(|block| of_block(block) as u64));
    let quartile = |share| quantile(&costs, share) as f64 / 1e3;
    Cost {
        map_time,
        release_time,
        calls_off_cpu: Nanos(sum(|block| block.calls_off_cpu.0)),
        total: ms(value, low, high),
        per_operation: Quantity::exact(quartile(0.5), Unit::Us),
        undisturbed_saving: saved * undisturbed.min(1.0) / 1e6,
        saving: ms(saved, (low * left).min(saved), (high * left).max(saved)),
        length: quantile(&lengths, 0.5),
        mapped: sum(|block| block.length.0),
        touched: sum(|block| block.brought.bytes.0),
        lifetime: (Nanos(quantile(&lifetimes, 0.5)), Nanos(quantile(&lifetimes, 0.95))),
        per_second: per_second(blocks().map(|block| block.opened.0)),
        huge_faults,
        perhaps_huge: huge_faults > 0,
        across_threads: blocks().filter(|block| block.released_by.is_some_and(|by| by != block.mapped_by)).count()
            as u64,
        faults,
    }
}
