//! One-sample inference on a centre of symmetry by the Wilcoxon signed-rank statistic.
//!
//! Owns the null distribution, the Hodges-Lehmann estimate and the interval that inverts the test. Sources:
//! J. L. Hodges and E. L. Lehmann, Annals of Mathematical Statistics 34 (1963), 598-611; M. Hollander and
//! D. A. Wolfe, "Nonparametric Statistical Methods" (1973), sections 3.1 to 3.3. The interval is the one that R's
//! `wilcox.test(x, conf.int = TRUE)` gives in its exact form.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Estimate, Level};

/// Up to this many values the null distribution is exact. Above it the normal approximation is used, which moves the
/// ends of the interval by one Walsh average at most, of more than five thousand.
pub const EXACT_LIMIT: usize = 100;

/// The centre of `values`: the median of all pairwise means (Hodges-Lehmann), with the interval of all centres that
/// the signed-rank test does not reject at this level. `None` for no values.
///
/// The interval is missing below the smallest sample for which the level exists (6 values at 95 %). Its coverage
/// is at least the level when the values are independent and symmetric about the centre, whatever their tails;
/// differences of two arms whose noise has the same shape are symmetric by construction. Ties make it
/// conservative. Time and memory grow with the square of the number of values.
pub fn centre(values: &[f64], level: Level) -> Option<Estimate> {
    let mut sums = walsh_sums(values);
    let last = sums.len().checked_sub(1)?;
    let mut smallest = |rank: usize| *sums.select_nth_unstable_by(rank, f64::total_cmp).1;
    let interval = excluded(values.len(), level).map(|cut| (smallest(cut) / 2.0, smallest(last - cut) / 2.0));
    Some(Estimate {
        value: (smallest(last / 2) + smallest(last.div_ceil(2))) / 4.0,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    })
}

/// The two-sided p-value of the hypothesis that `values` are symmetric about zero. Values of zero are left out (the interval
/// of [`centre`] keeps them, so the two can differ then); equal sizes share their ranks. Exact up to [`EXACT_LIMIT`] values,
/// ties included (the conditional distribution given the ranks; Hollander and Wolfe, section 3.1), above it the normal
/// approximation with its corrections for ties and continuity. `None` where no value differs from zero.
pub fn p_value(values: &[f64]) -> Option<f64> {
    let values: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).collect();
    let sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    if values.is_empty() {
        return None;
    }
    // Shared ranks are halves at most: doubled, all are whole.
    let doubled: Vec<usize> = crate::series::mid_ranks(&sizes).into_iter().map(|rank| (2.0 * rank) as usize).collect();
    let above: usize = values.iter().zip(&doubled).filter(|(value, _)| **value > 0.0).map(|(_, rank)| rank).sum();
    let total: usize = doubled.iter().sum();
    let smaller = above.min(total - above);
    if values.len() <= EXACT_LIMIT {
        let tail: f64 = null_distribution(doubled.into_iter()).into_iter().take(smaller + 1).sum();
        return Some((2.0 * tail).min(1.0));
    }
    let squares: f64 = doubled.iter().map(|rank| (rank * rank) as f64).sum();
    let distance = (total as f64 / 2.0 - smaller as f64 - 1.0).max(0.0);
    Some((2.0 * Normal::standard().sf(distance / (squares / 4.0).sqrt())).min(1.0))
}

/// Sums of all pairs of values, each value paired with itself too: twice the Walsh averages.
pub(crate) fn walsh_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, first) in values.iter().enumerate() {
        sums.extend(values[index..].iter().map(|second| first + second));
    }
    sums
}

/// How many of the sorted Walsh averages lie outside the interval on each side: the largest `c` with
/// `P(T <= c) < tail`. `None` when even `c = 0` is too likely, so that no interval of this level exists.
pub(crate) fn excluded(n: usize, level: Level) -> Option<usize> {
    let tail = level.tail();
    if n > EXACT_LIMIT {
        let n = n as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        // The half is the continuity correction: P(T <= c) is the normal area up to c + 1/2.
        let cut = mean + Normal::standard().inverse_cdf(tail) * deviation - 0.5;
        return (cut >= 0.0).then_some(cut as usize);
    }
    let mut cumulative = 0.0;
    let mut cut = None;
    for (rank_sum, probability) in null_distribution(1..=n).into_iter().enumerate() {
        cumulative += probability;
        if cumulative >= tail {
            break;
        }
        cut = Some(rank_sum);
    }
    cut
}

/// `P(T = t)` for the sum `T` of the ranks whose sign is positive, when every sign is a fair coin, for `t` in the lower half of
/// its range; the upper half mirrors it.
fn null_distribution(ranks: impl Iterator<Item = usize> + Clone) -> Vec<f64> {
    let half = ranks.clone().sum::<usize>() / 2;
    let mut probabilities = vec![0.0; half + 1];
    probabilities[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        reached = half.min(reached + rank);
        for sum in (0..=reached).rev() {
            let with_rank = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = (probabilities[sum] + with_rank) / 2.0;
        }
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hamilton depression scale before and after a tranquilizer: Hollander and Wolfe (1973), table 3.1, also the
    /// example of `?wilcox.test` in R. They print the estimate -0.46 and the 96.1 % interval (-0.786, -0.010)
    /// for after - before.
    #[expect(clippy::approx_constant, reason = "3.14 is a measurement")]
    const AFTER: [f64; 9] = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
    const BEFORE: [f64; 9] = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];

    /// Darwin's maize pairs in eighths of an inch, as used by Wilcoxon, Biometrics Bulletin 1 (1945), 80-83.
    const MAIZE: [f64; 15] = [14.0, 56.0, 60.0, 16.0, 6.0, 8.0, -48.0, 49.0, 24.0, 28.0, 29.0, 41.0, -67.0, 23.0, 75.0];

    fn assert_estimate(values: &[f64], level: f64, expected: [f64; 3]) {
        let level = Level::new(level).expect("a valid level");
        let estimate = centre(values, level).expect("there are values");
        let (low, high) = estimate.interval().expect("large enough");
        for (got, want) in [estimate.value, low, high].into_iter().zip(expected) {
            assert!((got - want).abs() < 1e-9, "got {got}, expected {want}");
        }
    }

    #[test]
    fn the_interval_equals_the_published_one_for_the_depression_data() {
        let differences: Vec<f64> = BEFORE.iter().zip(AFTER).map(|(x, y)| y - x).collect();
        assert_estimate(&differences, 0.95, [-0.46, -0.786, -0.010]);
    }

    #[test]
    fn intervals_equal_those_of_r_4_2_2_for_the_maize_data() {
        // wilcox.test(d, conf.int = TRUE, conf.level = ...), V = 96, p-value = 0.04126
        assert_estimate(&MAIZE, 0.90, [25.0, 8.0, 39.5]);
        assert_estimate(&MAIZE, 0.95, [25.0, 4.0, 41.5]);
        assert_estimate(&MAIZE, 0.99, [25.0, -13.0, 49.0]);
    }

    #[test]
    fn cuts_equal_the_quantiles_of_r_4_2_2() {
        // qsignrank(0.025, n) - 1: R counts the first Walsh average inside the interval from 1.
        let quantiles = [1, 3, 4, 6, 9, 11, 14, 18, 22, 26, 30, 35, 41, 47, 53, 59, 66, 74, 82, 90];
        for (n, quantile) in (6..).zip(quantiles) {
            assert_eq!(excluded(n, Level::P95), Some(quantile - 1), "n = {n}");
        }
        assert_eq!(excluded(50, Level::P95), Some(434));
        assert_eq!(excluded(100, Level::P95), Some(1955));
    }

    #[test]
    fn no_interval_exists_at_95_percent_below_six_values() {
        assert_eq!(excluded(5, Level::P95), None);
        let five = centre(&[1.0, 2.0, 3.0, 4.0, 5.0], Level::P95).expect("there are values");
        assert_eq!((five.value, five.interval()), (3.0, None));
        assert_eq!(centre(&[], Level::P95), None);
    }

    #[test]
    fn the_normal_approximation_joins_the_exact_distribution_within_one_rank() {
        // R 4.2.2: qsignrank(0.025, 101) - 1 and qsignrank(0.025, 200) - 1.
        for (n, exact) in [(101usize, 1997), (200, 8444)] {
            let cut = excluded(n, Level::P95).expect("large enough");
            assert!(cut.abs_diff(exact) <= 1, "n = {n}: {cut} against {exact}");
        }
    }

    #[test]
    fn the_p_value_is_exact_also_with_ties() {
        // R: wilcox.test(c(1.1, -0.4, 2.3, 0.9, 3.1, 1.7, -0.2))$p.value
        let p = p_value(&[1.1, -0.4, 2.3, 0.9, 3.1, 1.7, -0.2]).unwrap();
        assert!((p - 0.078_125).abs() < 1e-9, "{p}");
        assert_eq!(p_value(&[0.0, 0.0]), None);
        // All of n signs agree: 2 / 2^n, however equal the sizes and however many zeros are left out.
        for n in 1..10 {
            let mut values = vec![3.0; n];
            values.extend([0.0; 4]);
            assert!((p_value(&values).unwrap() - 2.0 / f64::from(1 << n)).abs() < 1e-12, "{n}");
        }
        assert!(p_value(&[1.0, -1.0, 1.0, -1.0]).unwrap() > 0.9);
    }

    proptest::proptest! {
        #[test]
        fn p_is_below_five_percent_exactly_when_the_interval_leaves_zero_out(
            values in proptest::collection::vec(-100.0f64..100.0, 6..40)
        ) {
            let sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
            let mut sorted = sizes.clone();
            sorted.sort_by(f64::total_cmp);
            sorted.dedup();
            proptest::prop_assume!(sorted.len() == sizes.len() && sorted[0] > 0.0);
            let interval = centre(&values, Level::P95).and_then(|centre| centre.interval());
            let (low, high) = interval.expect("six values have an interval");
            proptest::prop_assert_eq!(p_value(&values).unwrap() < 0.05, low > 0.0 || high < 0.0);
        }
    }
}
