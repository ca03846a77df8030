//! Quantities from times and counts.

use slowpath_tables::{Nanos, Quantity, Unit};

/// A time, in ms.
pub fn milliseconds(time: Nanos) -> Quantity {
    Quantity::exact(time.as_ms(), Unit::Ms)
}

/// A part of a whole; `None` where that is nothing. Both are of one unit: ns, or a number of rows.
pub fn ratio(part: f64, whole: u64) -> Option<Quantity> {
    (whole > 0).then(|| Quantity::exact(part / whole as f64, Unit::Ratio))
}
