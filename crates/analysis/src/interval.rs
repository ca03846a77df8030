//! One quantity from the values of several launches.
//!
//! Owns the interval that analysis prints beside a cost. Leaves comparisons between arms, and their inference, to
//! `experiment`.

use slowpath_tables::{Quantity, Unit};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// What is below the upper end of a two-sided 95 % interval.
const BELOW_UPPER_END: f64 = 0.975;

/// Middle of the sorted values; the mean of the two middle ones for an even number. `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Summarizes the values of several launches with a 95 % interval.
///
/// - one value: the value, no interval;
/// - 2 to 5 values: mean and Student's t interval, cut at zero when no value is negative (too few for order statistics);
/// - 6 and more: median and the interval between the order statistics that hold it with at least 95 % (sign test).
///
/// Returns `None` for no values.
pub fn summarize(values: &[f64], unit: Unit) -> Option<Quantity> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => None,
        1 => Some(Quantity::exact(sorted[0], unit)),
        2..=5 => {
            let mean = sorted.iter().sum::<f64>() / n as f64;
            let variance = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            let quantile = StudentsT::new(0.0, 1.0, (n - 1) as f64).ok()?.inverse_cdf(BELOW_UPPER_END);
            let half = quantile * (variance / n as f64).sqrt();
            let low = if sorted[0] >= 0.0 { (mean - half).max(0.0) } else { mean - half };
            Some(Quantity::interval(mean, low, mean + half, unit))
        }
        _ => {
            let rank = sign_test_rank(n);
            Some(Quantity::interval(median(&sorted)?, sorted[rank], sorted[n - 1 - rank], unit))
        }
    }
}

/// The 95 % interval of a share, `hits` of `trials`, which need not be whole where trials were weighed (E. B. Wilson, Journal of the
/// American Statistical Association 22 (1927), 209-212): right also where none or all are of one kind. From 0 to 1 without trials.
pub fn share_interval(hits: f64, trials: f64) -> (f64, f64) {
    if trials.is_nan() || trials <= 0.0 {
        return (0.0, 1.0);
    }
    let quantile = Normal::standard().inverse_cdf(BELOW_UPPER_END);
    let (share, squared) = ((hits / trials).clamp(0.0, 1.0), quantile * quantile);
    let middle = (share + squared / (2.0 * trials)) / (1.0 + squared / trials);
    let variance = share * (1.0 - share) / trials + squared / (4.0 * trials * trials);
    let half = quantile * variance.sqrt() / (1.0 + squared / trials);
    // Where none or all are of one kind, the end there is exact, which rounding would miss.
    let low = if share > 0.0 { (middle - half).max(0.0) } else { 0.0 };
    let high = if share < 1.0 { (middle + half).min(1.0) } else { 1.0 };
    (low, high)
}

/// Largest k for which the order statistics k and n-1-k (from zero) hold the median with at least 95 %:
/// the chance that at most k of n values fall on one side is binomial(n, 1/2) and may be 2.5 % at most.
fn sign_test_rank(n: usize) -> usize {
    let mut probability = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut below = probability;
    let mut rank = 0;
    while below <= 0.025 && rank + 1 < n {
        rank += 1;
        probability *= (n - rank + 1) as f64 / rank as f64;
        below += probability;
    }
    rank.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_have_the_wide_interval_of_one_degree_of_freedom() {
        let quantity = summarize(&[100.0, 102.0], Unit::Ms).unwrap();
        assert_eq!(quantity.value, 101.0);
        assert!((quantity.high.unwrap() - 113.706).abs() < 5e-4, "{quantity:?}");
    }

    #[test]
    fn few_values_have_the_quantiles_of_the_tables() {
        // Two-sided 95 % quantiles of Student's t for 1 to 4 degrees of freedom, as any table prints them.
        for (n, quantile) in [(2, 12.706), (3, 4.303), (4, 3.182), (5, 2.776)] {
            // The deviation of 1000, 1001, ... is the root of n (n + 1) / 12.
            let values: Vec<f64> = (0..n).map(|i| 1000.0 + f64::from(i)).collect();
            let found = summarize(&values, Unit::Ms).unwrap();
            let half = found.high.unwrap() - found.value;
            let error = (f64::from(n + 1) / 12.0).sqrt();
            assert!((half / error - quantile).abs() < 5e-4, "{n}: {}", half / error);
        }
    }

    #[test]
    fn six_values_give_the_extremes_and_nine_the_second_from_each_end() {
        let six = summarize(&[6.0, 1.0, 5.0, 2.0, 4.0, 3.0], Unit::Ms).unwrap();
        assert_eq!((six.low, six.value, six.high), (Some(1.0), 3.5, Some(6.0)));
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        let nine = summarize(&nine, Unit::Ms).unwrap();
        assert_eq!((nine.low, nine.value, nine.high), (Some(2.0), 5.0, Some(8.0)));
    }

    #[test]
    fn a_share_has_an_interval_that_stays_between_none_and_all() {
        let (low, high) = share_interval(1.0, 20.0);
        assert!((low - 0.00888).abs() < 1e-4 && (high - 0.23613).abs() < 1e-4, "{low} {high}");
        let (none, all) = (share_interval(0.0, 20.0), share_interval(20.0, 20.0));
        assert!(none.0 == 0.0 && all.1 > 0.999_999 && (none.1 - (1.0 - all.0)).abs() < 1e-9, "{none:?} {all:?}");
        assert_eq!(share_interval(0.0, 0.0), (0.0, 1.0));
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_quantity() {
        assert_eq!(summarize(&[3.0], Unit::Ms), Some(Quantity::exact(3.0, Unit::Ms)));
        assert_eq!(summarize(&[f64::NAN], Unit::Ms), None);
    }
}
