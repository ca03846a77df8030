//! The median of one arm with the interval between two of its order statistics.
//!
//! This describes an arm. Arms are compared by pairs in [`crate::effect`], never by looking whether two of these
//! intervals overlap.

use crate::{Estimate, Level, quantile};

/// The median of `values` with its distribution-free interval; `None` for no values.
///
/// The interval runs between the order statistics that inverting the sign test gives (David and Nagaraja, "Order
/// Statistics", 3rd edition 2003, section 7.1); it needs independent values and nothing of their shape. It is missing below
/// the smallest sample for which the level exists (6 values at 95 %).
pub fn median(values: &[f64], level: Level) -> Option<Estimate> {
    quantile::quantile(values, 0.5, level)
}

/// The median alone.
pub fn point(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The mean of the one or two values in the middle.
fn middle(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_equal_the_binomial_quantiles_of_r_4_2_2() {
        // qbinom(0.025, n, 0.5) - 1 for n = 6 ... 25 and for n = 100; there is none for n = 5.
        let quantiles = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8];
        for (n, quantile) in (6..).zip(quantiles) {
            assert_eq!(quantile::bounds(n, 0.5, Level::P95), Some((quantile - 1, n - quantile)), "n = {n}");
        }
        assert_eq!(quantile::bounds(100, 0.5, Level::P95), Some((39, 60)));
        assert_eq!(quantile::bounds(5, 0.5, Level::P95), None);
    }

    #[test]
    fn the_interval_of_six_values_is_their_range() {
        let six = median(&[6.0, 1.0, 5.0, 2.0, 4.0, 3.0], Level::P95).expect("there are values");
        assert_eq!((six.value, six.interval()), (3.5, Some((1.0, 6.0))));
        let five = median(&[1.0, 5.0, 2.0, 4.0, 3.0], Level::P95).expect("there are values");
        assert_eq!((five.value, five.interval()), (3.0, None));
        assert_eq!(median(&[], Level::P95), None);
    }
}
