//! Outcomes and estimates as every command prints them.

use slowpath_experiment::Estimate;
pub use slowpath_experiment::Outcome;
use slowpath_tables::{Quantity, Unit};

/// An estimate in a unit.
pub fn quantity(estimate: Estimate, unit: Unit) -> Quantity {
    Quantity { value: estimate.value, low: estimate.low, high: estimate.high, unit }
}
