//! What keeping the blocks is predicted to save, where it was measured beside the recording what blocks cost.
//!
//! Two ways lead to it, and both count the operations that are left out when as many blocks are kept as exist at the same time.
//!
//! 1. **Recorded**: the durations of their faults and calls ([`super::cost`]), and for each fault what no duration shows, less what
//!    recording adds inside one ([`BlockCost::unseen`](slowpath_recording::BlockCost::unseen)). Durations hold what is particular to
//!    this program: caches that others use meanwhile, pages that another CPU freed, memory that is scarce, a cgroup
//!    that is charged. Where waits were not recorded, they are of the clock, and a thread that is displaced in a fault raises them: at the
//!    value, the longest twentieth counts as long as the others' longest.
//! 2. **Calibrated**: the pages that were touched, times what keeping a block of this size saved for each page in a quiet single
//!    thread ([`crate::memory::cost_model`]). It is CPU time with all that belongs to it, but of another program.
//!
//! **Value**: the first where it is whole, else the second: durations alone lack what is not seen. **Interval**: all that either of
//! them holds. Where they are far from each other, one of the circumstances above is dear here, and keeping the block saves it or
//! not (a cold page that the kernel does not fetch is fetched by the program): the interval says that both can be.
//!
//! **None** without a measurement; where blocks are populated by a call, for then faults do not tell how much was touched; and
//! where faults may have brought huge pages.

use super::cost::Cost;
use super::groups::Group;
use crate::memory::cost_model::{CostModel, Estimate};
use crate::memory::memory_blocks::{Block, MemoryBlocks};
use slowpath_tables::{PAGE_SIZE, Quantity, Unit};
use std::collections::BTreeSet;

/// A prediction and its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    /// Faults that are left out.
    pub faults: u64,
    /// Pages that were touched in the operations that are left out.
    pub pages: u64,
    /// What a page costs in a block of this size, in ns.
    pub per_page: Estimate,
    /// What no duration of a fault shows, in ns.
    pub unseen: Option<Estimate>,
    /// What durations say, with what they do not show where that is known. In ms.
    pub recorded: Quantity,
    /// What the calibration says. In ms.
    pub calibrated: Quantity,
    /// The two together, in ms.
    pub saving: Quantity,
}

impl Prediction {
    /// Whether the two ways have nothing in common.
    pub fn disagrees(&self) -> bool {
        let ends = |one: &Quantity| (one.low.unwrap_or(one.value), one.high.unwrap_or(one.value));
        let (recorded, calibrated) = (ends(&self.recorded), ends(&self.calibrated));
        recorded.1 < calibrated.0 || calibrated.1 < recorded.0
    }
}

/// Predicts; or says why not.
pub(crate) fn predict(
    group: &Group,
    memory: &MemoryBlocks,
    cost: &Cost,
    model: Option<&CostModel>,
) -> Result<Prediction, &'static str> {
    let model = model.ok_or("the cost of blocks was not measured with this recording")?;
    let blocks = || group.operations.iter().map(|number| &memory.blocks[*number as usize]);
    if blocks().any(|block| block.populated) {
        return Err("blocks are populated by a call, so faults do not show how much of them was touched");
    }
    if cost.perhaps_huge {
        return Err("pages are huge ones, or may be, for which nothing was measured");
    }
    let per_page = model.per_page(cost.length).ok_or("no block of this size was measured")?;
    let first: BTreeSet<u32> = group.first_uses(&memory.blocks).collect();
    let left_out = || {
        let numbers = group.operations.iter().filter(|number| !first.contains(number));
        numbers.map(|number| &memory.blocks[*number as usize])
    };
    let sum = |of: fn(&Block) -> u64| left_out().map(of).fold(0u64, u64::saturating_add);
    let (faults, pages) = (sum(|block| block.faults), sum(|block| block.brought.bytes.0 / PAGE_SIZE));
    let unseen = model.unseen();

    let per_fault = unseen.unwrap_or(Estimate { value: 0.0, low: 0.0, high: 0.0 });
    let (low, high) = (cost.saving.low.unwrap_or(cost.saving.value), cost.saving.high.unwrap_or(cost.saving.value));
    let recorded = |ms: f64, ns: f64| (ms + faults as f64 * ns / 1e6).max(0.0);
    let recorded = Quantity::interval(
        recorded(cost.undisturbed_saving.clamp(low.min(high), high), per_fault.value),
        recorded(low, per_fault.low),
        recorded(high, per_fault.high),
        Unit::Ms,
    );
    let calibrated = |ns: f64| pages as f64 * ns / 1e6;
    let calibrated =
        Quantity::interval(calibrated(per_page.value), calibrated(per_page.low), calibrated(per_page.high), Unit::Ms);
    let value = if unseen.is_some() { recorded.value } else { calibrated.value };
    Ok(Prediction {
        faults,
        pages,
        per_page,
        unseen,
        recorded,
        calibrated,
        saving: hull(value, &recorded, &calibrated),
    })
}

/// The value with an interval that holds those of both.
pub(crate) fn hull(value: f64, one: &Quantity, other: &Quantity) -> Quantity {
    let low = |one: &Quantity| one.low.unwrap_or(one.value);
    let high = |one: &Quantity| one.high.unwrap_or(one.value);
    Quantity::interval(value, low(one).min(low(other)), high(one).max(high(other)), one.unit)
}

/// What several launches say of the saving, and never less than one of them is uncertain of by itself.
pub(crate) fn widened(several: Quantity, by: &Quantity) -> Quantity {
    hull(several.value, &several, by)
}
