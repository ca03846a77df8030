//! What it costs to map, touch and release a block of any size, from what was measured for some sizes.
//!
//! Owns which measured numbers are believed, and what lies between and beyond them. Pure. Leaves measuring to the recorder
//! ([`slowpath_recording::MemoryCost`]) and predictions to the findings.
//!
//! - A row is believed when its numbers are finite, in order, and no more than [`MOST_NS`]; its cost must be above zero. Others are
//!   left out: a manifest is a file that anybody may have written.
//! - Rows with huge pages are kept apart: faults of 4 KiB are what is counted. Those that asked for huge pages and got them say what
//!   the same bytes cost then; the two must be laid side by side, for a block without huge pages is slower in a kept block too.
//! - **Between** two sizes cost and interval are interpolated along the logarithm of the size: caches and the lists of free pages
//!   make steps at some powers of two, not at certain distances in bytes.
//! - **Beyond** the smallest and the largest size their cost holds, and the interval is wider by a quarter of its ends with each
//!   doubling: nothing was measured there. The quarter is a choice, not a measurement; from 1.3 to 80 MiB, six doublings, releasing
//!   a page was seen to become four times cheaper.
//! - Where a size was measured before the recording and after it, the value is the mean and the interval holds both: how fast the machine
//!   was in between is not known better. Recordings that were cut short, and old ones, have the first alone ([`when_measured`]).
//! - Blocks were measured with warm caches and with displaced ones. Which of the two a program has is not known: the value lies in
//!   the middle, the interval holds both. Where only the warm ones reach (blocks that displace caches themselves), they count for
//!   both.

use slowpath_recording::{BlockCost, Manifest, MemoryCost};
use slowpath_tables::{Quantity, Unit};

/// Most that a page is believed to cost, in ns: a hundred times what a seek of a disk for each of them would.
pub const MOST_NS: f64 = 1e9;

/// Largest block that is believed, in bytes.
const MOST_BYTES: u64 = 1 << 47;

/// By how much the ends of the interval move with each doubling beyond what was measured.
const BEYOND: f64 = 0.25;

/// A number with the interval that it comes with, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// What a manifest says, if it can be believed.
    fn of(quantity: &Quantity) -> Option<Self> {
        let (value, low, high) = (quantity.value, quantity.low?, quantity.high?);
        let believed = [value, low, high].iter().all(|one| one.is_finite() && one.abs() <= MOST_NS);
        (quantity.unit == Unit::Ns && believed && low <= value && value <= high).then_some(Self { value, low, high })
    }

    /// A cost: above zero.
    fn of_cost(quantity: &Quantity) -> Option<Self> {
        let found = Self::of(quantity).filter(|found| found.value > 0.0)?;
        Some(Self { low: found.low.max(0.0), ..found })
    }

    fn between(self, other: Self, share: f64) -> Self {
        let mixed = |of: fn(&Self) -> f64| of(&self) + (of(&other) - of(&self)) * share;
        let value = mixed(|one| one.value);
        // Rounding must not turn the order round.
        Self { value, low: mixed(|one| one.low).min(value), high: mixed(|one| one.high).max(value) }
    }

    fn widened(self, doublings: f64) -> Self {
        let factor = 1.0 + BEYOND * doublings.max(0.0);
        Self { low: self.low / factor, high: self.high * factor, ..self }
    }

    /// The mean of all, with all that they hold.
    fn of_all(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (mut count, mut sum, mut hull) = (0.0, 0.0, None::<(f64, f64)>);
        for one in all {
            count += 1.0;
            sum += one.value;
            hull = Some(hull.map_or((one.low, one.high), |(low, high)| (low.min(one.low), high.max(one.high))));
        }
        // Rounding must not turn the order round.
        hull.map(|(low, high)| Self { value: (sum / count).clamp(low, high), low, high })
    }
}

/// A size, as its logarithm to base 2, and what a page of it costs.
type Point = (f64, Estimate);

/// When it was measured what blocks cost, as a reader of a prediction finds it.
pub(crate) fn when_measured(manifest: &Manifest) -> &'static str {
    let mut blocks = manifest.memory_cost.iter().flat_map(|measured| &measured.blocks);
    if blocks.any(|block| block.after) { "before and after the recording" } else { "before the recording only" }
}

/// The costs of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    warm: Vec<Point>,
    displaced: Vec<Point>,
    /// Of blocks that asked for huge pages and got them: warm and displaced.
    huge: [Vec<Point>; 2],
    /// Whether blocks asked for huge pages and got none.
    asked_in_vain: bool,
    /// See [`BlockCost::unseen`].
    unseen: Option<Estimate>,
}

impl CostModel {
    /// Takes what can be believed; `None` where nothing is left.
    pub fn new(measured: &MemoryCost) -> Option<Self> {
        let is_believed = |row: &&BlockCost| (1..=MOST_BYTES).contains(&row.bytes.0);
        let is_small = |row: &BlockCost| !row.huge_pages && !row.advised;
        let is_huge = |row: &BlockCost| row.huge_pages && row.advised;
        let points = |is_meant: fn(&BlockCost) -> bool, displaced: bool| -> Vec<Point> {
            let rows = measured.blocks.iter().filter(is_believed).filter(|row| is_meant(row));
            let rows = rows.filter(|row| row.displaced == displaced);
            let point = |row: &BlockCost| Some(((row.bytes.0 as f64).log2(), Estimate::of_cost(&row.per_page)?));
            let mut points: Vec<Point> = rows.filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Before a recording and after it.
            let same = points.chunk_by(|a, b| a.0 == b.0);
            same.filter_map(|same| Some((same[0].0, Estimate::of_all(same.iter().map(|point| point.1))?))).collect()
        };
        let (warm, mut displaced) = (points(is_small, false), points(is_small, true));
        if let Some(last) = displaced.last().map(|point| point.0) {
            displaced.extend(warm.iter().filter(|point| point.0 > last));
        }
        let small = measured.blocks.iter().filter(is_believed).filter(|row| is_small(row));
        let unseen = small.filter_map(|row| Estimate::of(row.unseen.as_ref()?));
        let huge = [false, true].map(|displaced| points(is_huge, displaced));
        let asked_in_vain = measured.blocks.iter().any(|row| row.advised && !row.huge_pages);
        let model = Self { warm, displaced, huge, asked_in_vain, unseen: Estimate::of_all(unseen) };
        (!model.warm.is_empty() || !model.displaced.is_empty()).then_some(model)
    }

    /// CPU time that keeping a block of so many bytes saves for each of its pages, in ns; `None` for a block without a byte.
    pub fn per_page(&self, bytes: u64) -> Option<Estimate> {
        let size = (bytes > 0).then(|| (bytes as f64).log2())?;
        Estimate::of_all([&self.warm, &self.displaced].into_iter().filter_map(|points| at(points, size)))
    }

    /// The same for a block that has huge pages, for each 4 KiB of it; `None` where it was not measured.
    pub fn per_page_of_huge(&self, bytes: u64) -> Option<Estimate> {
        let size = (bytes > 0).then(|| (bytes as f64).log2())?;
        Estimate::of_all(self.huge.iter().filter_map(|points| at(points, size)))
    }

    /// Whether blocks asked for huge pages when it was measured and the kernel gave them none.
    pub fn asked_in_vain(&self) -> bool {
        self.asked_in_vain
    }

    /// What no duration of a fault shows, less what recording adds inside one, in ns; `None` where it was not measured. May be below
    /// zero: recording can add more than is not seen.
    pub fn unseen(&self) -> Option<Estimate> {
        self.unseen
    }
}

/// What points say of a size.
fn at(points: &[Point], size: f64) -> Option<Estimate> {
    let after = points.partition_point(|point| point.0 < size);
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (Some(before), Some(after)) => Some(before.1.between(after.1, (size - before.0) / (after.0 - before.0))),
        (Some(last), None) => Some(last.1.widened(size - last.0)),
        (None, Some(first)) => Some(first.1.widened(first.0 - size)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::{Bytes, Nanos};

    const MIB: u64 = 1 << 20;

    fn row(bytes: u64, displaced: bool, per_page: [f64; 3]) -> BlockCost {
        let [low, value, high] = per_page;
        BlockCost {
            bytes: Bytes(bytes),
            displaced,
            after: false,
            operations: 8,
            faults: bytes / 512,
            huge_pages: false,
            advised: false,
            per_page: Quantity::interval(value, low, high, Unit::Ns),
            unseen: None,
        }
    }

    fn model(blocks: Vec<BlockCost>) -> Option<CostModel> {
        CostModel::new(&MemoryCost { took: Nanos(1), blocks })
    }

    fn numbers(estimate: Option<Estimate>) -> [f64; 3] {
        estimate.map_or([f64::NAN; 3], |one| [one.low, one.value, one.high])
    }

    #[test]
    fn what_was_measured_is_given_as_it_was_and_between_two_sizes_by_their_logarithm() {
        let model =
            model(vec![row(4 * MIB, false, [1900.0, 2000.0, 2100.0]), row(MIB, false, [900.0, 1000.0, 1200.0])]);
        let model = model.unwrap();
        assert_eq!(numbers(model.per_page(MIB)), [900.0, 1000.0, 1200.0]);
        assert_eq!(numbers(model.per_page(4 * MIB)), [1900.0, 2000.0, 2100.0]);
        assert_eq!(numbers(model.per_page(2 * MIB)), [1400.0, 1500.0, 1650.0]);
        assert_eq!(model.per_page(0), None);
    }

    #[test]
    fn beyond_what_was_measured_the_interval_grows_with_each_doubling() {
        let model = model(vec![row(MIB, false, [900.0, 1000.0, 1200.0])]).unwrap();
        assert_eq!(numbers(model.per_page(16 * MIB)), [450.0, 1000.0, 2400.0]);
        assert_eq!(numbers(model.per_page(MIB / 16)), [450.0, 1000.0, 2400.0]);
        let largest = model.per_page(u64::MAX).unwrap();
        assert!(largest.low > 0.0 && largest.high.is_finite() && largest.value == 1000.0, "{largest:?}");
    }

    #[test]
    fn the_interval_holds_warm_and_displaced_caches_and_large_blocks_count_for_both() {
        let rows = [
            row(MIB, false, [900.0, 1000.0, 1100.0]),
            row(16 * MIB, false, [1400.0, 1500.0, 1600.0]),
            row(MIB, true, [1900.0, 2000.0, 2100.0]),
        ];
        let model = model(rows.to_vec()).unwrap();
        assert_eq!(numbers(model.per_page(MIB)), [900.0, 1500.0, 2100.0]);
        assert_eq!(numbers(model.per_page(16 * MIB)), [1400.0, 1500.0, 1600.0]);
        // Half way: warm 1250, displaced on its way from 2000 to 1500.
        assert_eq!(numbers(model.per_page(4 * MIB)), [1150.0, 1500.0, 1850.0]);
    }

    #[test]
    fn what_was_measured_before_and_after_counts_alike_and_the_interval_holds_both() {
        let unseen = |[low, value, high]: [f64; 3]| Some(Quantity::interval(value, low, high, Unit::Ns));
        let before = BlockCost { unseen: unseen([100.0, 200.0, 300.0]), ..row(MIB, false, [900.0, 1000.0, 1100.0]) };
        let after = BlockCost {
            after: true,
            unseen: unseen([500.0, 800.0, 900.0]),
            ..row(MIB, false, [1500.0, 1600.0, 1700.0])
        };
        let displaced = BlockCost { unseen: unseen([400.0, 500.0, 600.0]), ..row(MIB, true, [1300.0, 1400.0, 1500.0]) };
        let model = model(vec![before, displaced, after]).unwrap();
        // Warm 1300, displaced 1400.
        assert_eq!(numbers(model.per_page(MIB)), [900.0, 1350.0, 1700.0]);
        assert_eq!(numbers(model.unseen()), [100.0, 500.0, 900.0]);
    }

    #[test]
    fn blocks_with_huge_pages_have_a_price_of_their_own() {
        let huge =
            |displaced, numbers| BlockCost { huge_pages: true, advised: true, ..row(4 * MIB, displaced, numbers) };
        let small = row(MIB, false, [900.0, 1000.0, 1100.0]);
        let model = model(vec![small.clone(), huge(false, [70.0, 80.0, 90.0]), huge(true, [100.0, 120.0, 130.0])]);
        let model = model.unwrap();
        assert_eq!(numbers(model.per_page_of_huge(4 * MIB)), [70.0, 100.0, 130.0]);
        assert_eq!(numbers(model.per_page_of_huge(64 * MIB)), [35.0, 100.0, 260.0]);
        assert_eq!(numbers(model.per_page(MIB)), [900.0, 1000.0, 1100.0]);
        assert!(!model.asked_in_vain() && model.per_page_of_huge(0).is_none());
        let in_vain = BlockCost { huge_pages: false, ..huge(false, [900.0, 1000.0, 1100.0]) };
        let model = self::model(vec![small, in_vain]).unwrap();
        assert!(model.asked_in_vain() && model.per_page_of_huge(4 * MIB).is_none());
        // A block that got huge pages without asking shows nothing of one that has none.
        let unasked = BlockCost { huge_pages: true, ..row(4 * MIB, false, [70.0, 80.0, 90.0]) };
        assert_eq!(self::model(vec![unasked]), None);
    }

    #[test]
    fn numbers_that_cannot_be_are_left_out() {
        let nonsense = [
            [f64::NAN, 1000.0, 1100.0],
            [900.0, f64::NAN, 1100.0],
            [900.0, 1000.0, f64::INFINITY],
            [900.0, 1000.0, 1e300],
            [1e300, 1e300, 1e300],
            [900.0, 0.0, 1100.0],
            [-1100.0, -1000.0, -900.0],
            [1100.0, 1000.0, 900.0],
            [0.0, 0.0, 0.0],
        ];
        for numbers in nonsense {
            assert_eq!(model(vec![row(MIB, false, numbers)]), None, "{numbers:?}");
        }
        let wrong = |edit: fn(&mut BlockCost)| {
            let mut row = row(MIB, false, [900.0, 1000.0, 1100.0]);
            edit(&mut row);
            model(vec![row])
        };
        assert!(wrong(|_| ()).is_some());
        assert_eq!(wrong(|row| row.bytes = Bytes(0)), None);
        assert_eq!(wrong(|row| row.bytes = Bytes(u64::MAX)), None);
        assert_eq!(wrong(|row| row.huge_pages = true), None);
        assert_eq!(wrong(|row| row.per_page.low = None), None);
        assert_eq!(wrong(|row| row.per_page.unit = Unit::Ms), None);
        assert_eq!(model(Vec::new()), None);
        // One row of nonsense does not spoil another; an interval that reaches below zero ends there.
        let found = model(vec![row(MIB, false, [f64::NAN; 3]), row(MIB, false, [-50.0, 1000.0, 1100.0])]).unwrap();
        assert_eq!(numbers(found.per_page(MIB)), [0.0, 1000.0, 1100.0]);
    }

    #[test]
    fn what_is_not_seen_may_be_less_than_what_recording_adds() {
        let with = |unseen: [[f64; 3]; 2]| {
            let rows = unseen.into_iter().zip([false, true]).map(|([low, value, high], displaced)| BlockCost {
                unseen: Some(Quantity::interval(value, low, high, Unit::Ns)),
                ..row(MIB, displaced, [900.0, 1000.0, 1100.0])
            });
            model(rows.collect()).unwrap().unseen()
        };
        assert_eq!(numbers(with([[300.0, 400.0, 500.0], [-200.0, -100.0, 50.0]])), [-200.0, 150.0, 500.0]);
        assert_eq!(numbers(with([[300.0, 400.0, 500.0], [0.0, f64::NAN, 0.0]])), [300.0, 400.0, 500.0]);
        assert_eq!(model(vec![row(MIB, false, [900.0, 1000.0, 1100.0])]).unwrap().unseen(), None);
    }

    fn any_number() -> impl proptest::strategy::Strategy<Value = f64> {
        proptest::prop_oneof![4 => 1.0f64..5000.0, 1 => proptest::num::f64::ANY]
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_manifest_says_the_answer_is_finite_and_in_order(
            rows in proptest::collection::vec((0u64.., 0u8..2, proptest::array::uniform3(any_number())), 0..12),
            bytes in 0u64..,
        ) {
            let rows = rows.into_iter().map(|(bytes, displaced, numbers)| row(bytes, displaced == 1, numbers)).collect();
            if let Some(one) = model(rows).and_then(|model| model.per_page(bytes)) {
                proptest::prop_assert!(one.low.is_finite() && one.high.is_finite(), "{:?}", one);
                proptest::prop_assert!(0.0 <= one.low && one.low <= one.value && one.value <= one.high, "{:?}", one);
            }
        }
    }
}
