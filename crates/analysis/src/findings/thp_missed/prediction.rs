//! What huge pages are predicted to save: the faults that are avoided, less what a huge page costs instead.
//!
//! A huge page is zeroed too, all of it. What that costs was measured beside the recording: blocks that ask for huge pages, against
//! the same writes into a kept block that has them ([`crate::memory::cost_model::CostModel::per_page_of_huge`]). It is taken for every span as
//! a whole, touched or not. **Value**: the cost less that. **Interval**: the worst ends of both; never below nothing, never more than
//! the cost.
//!
//! **Not included**, and both are gains: address translation, which needs fewer entries for huge pages; giving back one page in place
//! of hundreds.
//!
//! **None** where it was not measured: without a measurement, where the machine gives no huge pages, where the kernel gave none to
//! blocks that asked for them.

use super::cost::Cost;
use super::groups::{Missed, Mode};
use crate::memory::cost_model::{CostModel, Estimate};
use crate::memory::huge_page_spans::Spans;
use slowpath_tables::{Quantity, Unit};

/// A prediction and its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    /// What 4 KiB of a huge page cost, in ns.
    pub per_page: Estimate,
    /// What the huge pages cost, in ms.
    pub instead: Quantity,
    /// What is saved, in ms.
    pub saving: Quantity,
}

/// Predicts; or says why not.
pub(crate) fn predict(
    group: &Missed,
    spans: &Spans,
    cost: &Cost,
    mode: Mode,
    model: Option<&CostModel>,
) -> Result<Prediction, &'static str> {
    if mode == Mode::Never {
        return Err("huge pages are switched off on this machine, so what they cost instead could not be measured");
    }
    let model = model.ok_or("the cost of blocks was not measured with this recording")?;
    let count = group.spans.len() as u64;
    let bytes = count.saturating_mul(spans.size.0);
    let per_page = match model.per_page_of_huge(bytes / group.mappings.max(1)) {
        Some(per_page) => per_page,
        None if model.asked_in_vain() => {
            return Err("blocks that asked for huge pages got none during the calibration");
        }
        None => return Err("the cost of huge pages was not measured with this recording"),
    };
    let pages = count.saturating_mul(spans.pages().0) as f64;
    let ms = |ns: f64| pages * ns / 1e6;
    let instead = Quantity::interval(ms(per_page.value), ms(per_page.low), ms(per_page.high), Unit::Ms);
    Ok(Prediction { per_page, instead, saving: less(&cost.total, &instead) })
}

/// What is left of a cost; worst ends are subtracted.
fn less(cost: &Quantity, price: &Quantity) -> Quantity {
    let ends = |one: &Quantity| (one.low.unwrap_or(one.value), one.high.unwrap_or(one.value));
    let (cheap, dear) = ends(price);
    let (low, high) = ends(cost);
    let left = |cost: f64, price: f64| (cost - price.max(0.0)).max(0.0);
    Quantity::interval(left(cost.value, price.value), left(low, dear), left(high, cheap), cost.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_saving_is_in_order_and_never_more_than_the_cost(
            cost in proptest::array::uniform3(0.0f64..1e6),
            price in proptest::array::uniform3(0.0f64..1e6),
        ) {
            let quantity = |mut ends: [f64; 3]| {
                ends.sort_by(f64::total_cmp);
                Quantity::interval(ends[1], ends[0], ends[2], Unit::Ms)
            };
            let (cost, price) = (quantity(cost), quantity(price));
            let saving = less(&cost, &price);
            let (low, high) = (saving.low.unwrap(), saving.high.unwrap());
            proptest::prop_assert!(0.0 <= low && low <= saving.value && saving.value <= high, "{:?}", saving);
            proptest::prop_assert!(saving.value <= cost.value && high <= cost.high.unwrap(), "{:?}", saving);
        }
    }
}
