//! What keeping the memory is predicted to save: what events show of it, and for each fault what no duration shows, less what recording
//! adds inside one ([`BlockCost::unseen`](slowpath_recording::BlockCost::unseen)).
//!
//! Faults of memory that comes back are those of memory that is new, so what was measured of these holds for them. Calls are few: what
//! recording adds to them is left in. Without a measurement durations alone predict.

use crate::memory::cost_model::Estimate;
use slowpath_tables::{Quantity, Unit};

/// The predicted saving, in ms. `cost` is that of one launch or of several, `faults` how many the one in the middle has.
pub(super) fn saving(cost: &Quantity, faults: u64, unseen: Option<Estimate>) -> Quantity {
    let Some(unseen) = unseen else { return *cost };
    let with = |ms: f64, ns: f64| (ms + faults as f64 * ns / 1e6).max(0.0);
    let (low, high) = (cost.low.unwrap_or(cost.value), cost.high.unwrap_or(cost.value));
    Quantity::interval(with(cost.value, unseen.value), with(low, unseen.low), with(high, unseen.high), Unit::Ms)
}

/// What must be known to read it. `when` it was measured what durations lack ([`when_measured`](crate::memory::cost_model::when_measured)).
pub(super) fn reason(unseen: Estimate, when: &str) -> String {
    format!(
        "the predicted saving has for each fault {:.0} ns ({:.0} to {:.0}) that its duration lacks, less what recording adds to it, as \
         measured {when}; the cost has not",
        unseen.value, unseen.low, unseen.high
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    fn of(unseen: Option<Estimate>) -> Quantity {
        saving(&Quantity::interval(2.0, 1.0, 3.0, Unit::Ms), 1000, unseen)
    }

    #[test]
    fn each_fault_adds_what_its_duration_lacks_and_nothing_is_below_zero() {
        assert_eq!(of(None), Quantity::interval(2.0, 1.0, 3.0, Unit::Ms));
        let more = of(Some(Estimate { value: 500.0, low: 100.0, high: 900.0 }));
        assert_eq!(more, Quantity::interval(2.5, 1.1, 3.9, Unit::Ms));
        let less = of(Some(Estimate { value: -500.0, low: -1500.0, high: 0.0 }));
        assert_eq!(less, Quantity::interval(1.5, 0.0, 3.0, Unit::Ms));
    }
}
