//! Quantiles of arms and their differences: what the slow launches of one arm are against the slow launches of another.
//!
//! The median of a quantile's difference is not the quantile of the differences: pairs do not help here, and drift of the
//! machine is part of both arms' spread. For location, [`crate::effect`] sees far smaller differences.

use crate::{Estimate, Level};
use statrs::distribution::{Binomial, DiscreteCDF};

/// A quantile of `values`, with its distribution-free interval between two order statistics (H. A. David and H. N. Nagaraja,
/// "Order Statistics", 3rd edition 2003, section 7.1). The point interpolates linearly between order statistics (type 7 of
/// R. J. Hyndman and Y. Fan, The American Statistician 50 (1996), 361-365). The interval is missing below [`needed`]
/// values; `None` for no values and a quantile that is not strictly between 0 and 1.
pub fn quantile(values: &[f64], quantile: f64, level: Level) -> Option<Estimate> {
    if values.is_empty() || !(quantile > 0.0 && quantile < 1.0) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = quantile * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    let interval = bounds(sorted.len(), quantile, level).map(|(low, high)| (sorted[low], sorted[high]));
    Some(Estimate {
        value: below + (above - below) * place.fract(),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    })
}

/// Places, from 0, of the two order statistics that hold the quantile between them.
pub(crate) fn bounds(n: usize, quantile: f64, level: Level) -> Option<(usize, usize)> {
    let binomial = Binomial::new(quantile, n as u64).ok()?;
    let tail = level.tail();
    // The value at place `i` lies above the quantile when at most `i` values lie below it. Smallest count whose
    // cumulative probability reaches the tail: one less is safely below.
    let low = usize::try_from(binomial.inverse_cdf(tail)).ok()?.checked_sub(1)?;
    let high = usize::try_from(binomial.inverse_cdf(1.0 - tail)).ok()?;
    (high < n).then_some((low, high))
}

/// How many values an interval of this quantile takes.
pub fn needed(quantile: f64, level: Level) -> Option<usize> {
    (1..=100_000).find(|n| bounds(*n, quantile, level).is_some())
}

/// The difference of one quantile between two arms, `treated` less `baseline`. Its interval joins the intervals of both
/// (MOVER: G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008), 1693-1702), which asks that the arms are independent
/// given the machine: what both share (drift) is counted twice and makes it wider.
pub fn difference(baseline: &[f64], treated: &[f64], at: f64, level: Level) -> Option<Estimate> {
    let (before, after) = (quantile(baseline, at, level)?, quantile(treated, at, level)?);
    let value = after.value - before.value;
    let ends = before.interval().zip(after.interval()).map(|((before_low, before_high), (after_low, after_high))| {
        let down = (after.value - after_low).hypot(before_high - before.value);
        let up = (after_high - after.value).hypot(before.value - before_low);
        (value - down, value + up)
    });
    Some(Estimate { value, low: ends.map(|(low, _)| low), high: ends.map(|(_, high)| high) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_the_median_is_that_between_known_order_statistics() {
        // Tables of David and Nagaraja: n = 20, 95 %: the 6th and the 15th value.
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let estimate = quantile(&values, 0.5, Level::P95).unwrap();
        assert_eq!((estimate.value, estimate.low, estimate.high), (10.5, Some(6.0), Some(15.0)));
    }

    #[test]
    fn a_high_quantile_takes_many_values_and_says_how_many() {
        // 0.95^n <= 0.025 from 72 on: before, even the largest value may lie below the quantile.
        let least = needed(0.95, Level::P95).unwrap();
        assert!((72..=100).contains(&least), "{least}");
        let values: Vec<f64> = (0..least).map(|i| i as f64).collect();
        assert!(quantile(&values, 0.95, Level::P95).unwrap().interval().is_some());
        assert!(quantile(&values[1..], 0.95, Level::P95).unwrap().interval().is_none());
    }

    #[test]
    fn a_shift_is_the_difference_at_every_quantile() {
        let before: Vec<f64> = (0..80).map(|i| f64::from(i * 7 % 80)).collect();
        let after: Vec<f64> = before.iter().map(|value| value + 5.0).collect();
        for at in [0.5, 0.9] {
            let estimate = difference(&before, &after, at, Level::P95).unwrap();
            assert!((estimate.value - 5.0).abs() < 1e-9);
            let (low, high) = estimate.interval().unwrap();
            assert!(low < 5.0 && 5.0 < high);
        }
        assert!(difference(&before, &[], 0.5, Level::P95).is_none());
        assert!(quantile(&before, 1.0, Level::P95).is_none());
    }
}
