//! One quantity from the values of several launches.
//!
//! Owns the interval that analysis prints beside a cost. Leaves comparisons between arms, and their inference, to
//! `experiment`.

use slowpath_tables::{Quantity, Unit};

/// Two-sided 95 % quantiles of Student's t for 1 to 4 degrees of freedom (any table of the distribution).
const STUDENT_T_975: [f64; 4] = [12.706, 4.303, 3.182, 2.776];

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
            let half = STUDENT_T_975[n - 2] * (variance / n as f64).sqrt();
            let low = if sorted[0] >= 0.0 { (mean - half).max(0.0) } else { mean - half };
            Some(Quantity::interval(mean, low, mean + half, unit))
        }
        _ => {
            let rank = sign_test_rank(n);
            Some(Quantity::interval(median(&sorted)?, sorted[rank], sorted[n - 1 - rank], unit))
        }
    }
}

/// 97.5 % quantile of the normal distribution.
const NORMAL_975: f64 = 1.959_964;

/// The 95 % interval of a share, `hits` of `trials`, which need not be whole where trials were weighed (E. B. Wilson, Journal of the
/// American Statistical Association 22 (1927), 209-212). From 0 to 1 without trials.
pub fn share_interval(hits: f64, trials: f64) -> (f64, f64) {
    if trials.is_nan() || trials <= 0.0 {
        return (0.0, 1.0);
    }
    let (share, squared) = ((hits / trials).clamp(0.0, 1.0), NORMAL_975 * NORMAL_975);
    let middle = (share + squared / (2.0 * trials)) / (1.0 + squared / trials);
    let variance = share * (1.0 - share) / trials + squared / (4.0 * trials * trials);
    let half = NORMAL_975 * variance.sqrt() / (1.0 + squared / trials);
    ((middle - half).max(0.0), (middle + half).min(1.0))
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
        assert!((quantity.high.unwrap() - 113.706).abs() < 1e-9);
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
