//! What first touches of pages cost that were never used, and what leaving them out would save.
//!
//! **Value.** Time in the faults in the blocks, times the share of their pages that held nothing but zeros.
//!
//! **Interval.** That of the faults ([`crate::findings::fault_sums`]), those that may have brought huge pages apart
//! ([`crate::memory::huge_faults`]), and that of the share, which comes from a sample
//! ([`crate::findings::never_used`]): low times low, high times high.
//!
//! **Saving.** Where it was measured beside the recording what blocks cost: the value with what no duration of a fault shows, less
//! what recording adds to one; the interval also holds as many pages at the price of keeping a block of this size
//! ([`crate::memory::cost_model`]), in which giving a page back is included. Else the value.
//!
//! **Not included** is the program's own time to clear the pages.

use super::groups::Oversized;
use crate::findings::fault_sums::{FaultSums, quantile, sorted};
use crate::findings::never_used::NeverUsed;
use crate::findings::transient_large_allocation::prediction::hull;
use crate::memory::cost_model::CostModel;
use crate::memory::memory_blocks::MemoryBlocks;
use crate::time::off_cpu_times::FaultTimes;
use slowpath_tables::{Bytes, Quantity, Unit};
use std::collections::BTreeMap;

/// The cost of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cost {
    /// All faults in the blocks.
    pub faults: FaultSums,
    /// Pages that they brought: one of the kernel's each, or as many as looks stand for, where a fault can have brought a huge one.
    pub pages: u64,
    /// Which share of what they brought was never used.
    pub unused: NeverUsed,
    /// Everything, in ms.
    pub total: Quantity,
    /// Size of a block, median, in bytes.
    pub length: u64,
    /// How far into a block the last page was used, the most of all blocks; 0 where none was.
    pub used_to: Bytes,
    /// Share of the unused pages that lie behind the last used one of their block.
    pub behind: f64,
    /// Whether faults can have brought huge pages.
    pub perhaps_huge: bool,
}

/// Adds up a group; `None` where nothing was looked at.
pub(crate) fn cost(group: &Oversized, memory: &MemoryBlocks, faults: &FaultTimes<'_>) -> Option<Cost> {
    let of_kind = |is_meant: bool| {
        FaultSums::of(group.faults.iter().copied().filter(|row| memory.is_huge(*row) == is_meant), faults)
    };
    let huge = of_kind(true);
    let perhaps_huge = huge.count > 0;
    let sums = of_kind(false).with(huge);
    let unused = NeverUsed::of(group.seen.iter())?;
    let value = sums.time() * unused.share;
    let (low, high) = ((sums.low() * unused.low).min(value), sums.high() * unused.high);
    let blocks = || group.blocks.iter().map(|block| &memory.blocks[*block as usize]);

    let mut used_to: BTreeMap<u32, Bytes> = BTreeMap::new();
    for page in group.seen.iter().filter(|page| !page.is_zero) {
        let to = used_to.entry(page.block).or_default();
        // What comes before the next page that was looked at can be used as well.
        *to = (*to).max(Bytes(page.offset.0.saturating_add(page.stands_for.bytes().0)));
    }
    let end = |block: u32| used_to.get(&block).copied().unwrap_or_default();
    let weight = |behind: bool| -> u64 {
        let zero = group.seen.iter().filter(|page| page.is_zero);
        zero.filter(|page| !behind || page.offset >= end(page.block)).map(|page| page.stands_for.0).sum()
    };
    Some(Cost {
        total: Quantity::interval(value / 1e6, low / 1e6, high / 1e6, Unit::Ms),
        length: quantile(&sorted(blocks().map(|block| block.length.0)), 0.5),
        used_to: used_to.values().copied().max().unwrap_or_default(),
        behind: weight(true) as f64 / weight(false).max(1) as f64,
        pages: if perhaps_huge {
            group.seen.iter().map(|page| page.stands_for.0).sum()
        } else {
            memory.brought_by(sums.count)
        },
        perhaps_huge,
        faults: sums,
        unused,
    })
}

impl Cost {
    /// Pages that faults brought and that were never used.
    pub fn unused_pages(&self) -> Quantity {
        let of = |share: f64| (self.pages as f64 * share).round();
        Quantity::interval(of(self.unused.share), of(self.unused.low), of(self.unused.high), Unit::Count)
    }

    /// What leaving them out saves, in ms, or why that comes from durations alone.
    pub fn saving(&self, model: Option<&CostModel>) -> Result<Quantity, &'static str> {
        let model = model.ok_or("the cost of blocks was not measured with this recording")?;
        if self.perhaps_huge {
            return Err("pages may be huge ones, for which nothing was measured");
        }
        let per_page = model.per_page(self.length).ok_or("no block of this size was measured")?;
        let (of, unseen) = (self.faults.count as f64 / 1e6, model.unseen());
        let ends = |one: &Quantity| [one.value, one.low.unwrap_or(one.value), one.high.unwrap_or(one.value)];
        let shares = [self.unused.share, self.unused.low, self.unused.high];
        let [value, low, high] = ends(&self.total);
        let more = unseen.map_or([0.0; 3], |unseen| [unseen.value, unseen.low, unseen.high]);
        let with = |ms: f64, at: usize| (ms + of * shares[at] * more[at]).max(0.0);
        let recorded = [with(value, 0), with(low, 1), with(high, 2)];
        let recorded =
            Quantity::interval(recorded[0], recorded[1].min(recorded[0]), recorded[2].max(recorded[0]), Unit::Ms);
        let of = self.pages as f64 / 1e6;
        let calibrated = Quantity::interval(
            of * shares[0] * per_page.value,
            of * shares[1] * per_page.low,
            of * shares[2] * per_page.high,
            Unit::Ms,
        );
        let value = if unseen.is_some() { recorded.value } else { calibrated.value };
        Ok(hull(value, &recorded, &calibrated))
    }
}
