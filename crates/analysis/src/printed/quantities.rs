//! Quantities from times, counts and estimates.

use slowpath_experiment::Estimate;
use slowpath_tables::{Nanos, Quantity, Unit};

/// An estimate in a unit.
pub fn of_estimate(estimate: Estimate, unit: Unit) -> Quantity {
    Quantity { value: estimate.value, low: estimate.low, high: estimate.high, unit }
}

/// A time, in ms.
pub fn milliseconds(time: Nanos) -> Quantity {
    Quantity::exact(time.as_ms(), Unit::Ms)
}

/// A part of a whole; `None` where that is nothing. Both are of one unit: ns, or a number of rows.
pub fn ratio(part: f64, whole: u64) -> Option<Quantity> {
    (whole > 0).then(|| Quantity::exact(part / whole as f64, Unit::Ratio))
}
