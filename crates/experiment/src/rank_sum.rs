//! Two independent samples, compared by the Wilcoxon rank-sum statistic (Mann and Whitney's `U`).
//!
//! For recordings or launches that no block pairs. Whatever drifted between the two samples is part of what is found; where
//! there are blocks, [`crate::effect`] removes it. Owns the null distribution, the Hodges-Lehmann estimate of the shift and the
//! interval that inverts the test. Sources: H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics 18 (1947), 50-60;
//! J. L. Hodges and E. L. Lehmann, ibid. 34 (1963), 598-611; M. Hollander and D. A. Wolfe, "Nonparametric Statistical
//! Methods" (1973), sections 4.1 to 4.3. The interval is the one that R's `wilcox.test(after, before, conf.int = TRUE)` gives in
//! its exact form.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Estimate, Level, median};

/// Up to this many pairs of a value of each sample (50 and 50) the null distribution is exact. Above it the normal approximation
/// is used, which moves the ends of the interval by one difference at most, of more than 2,500.
pub const EXACT_LIMIT: usize = 2500;

/// What differs between two independent samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Independent {
    /// After minus before, in the unit of the values; see [`shift`].
    pub difference: Estimate,
    /// After over before, from the same inference on logarithms; `None` where a value is not positive.
    pub ratio: Option<Estimate>,
    /// Median of the values before; describes them, takes no part in the comparison.
    pub before: Estimate,
    /// The same after.
    pub after: Estimate,
}

/// Compares two independent samples; `None` where one of them is empty or holds a value that is not finite.
pub fn independent(before: &[f64], after: &[f64], level: Level) -> Option<Independent> {
    if before.iter().chain(after).any(|value| !value.is_finite()) {
        return None;
    }
    let logarithms = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|&value| (value > 0.0).then(|| value.ln())).collect()
    };
    let ratio = logarithms(before).zip(logarithms(after)).and_then(|(before, after)| shift(&before, &after, level));
    Some(Independent {
        difference: shift(before, after, level)?,
        ratio: ratio.map(|estimate| estimate.map(f64::exp)),
        before: median::median(before, level)?,
        after: median::median(after, level)?,
    })
}

/// By how much `after` lies above `before`: the median of all differences of a value after and a value before
/// (Hodges-Lehmann), with the interval of all shifts that the rank-sum test does not reject at this level. `None` for an
/// empty sample.
///
/// The interval is missing where the level does not exist for so few values ([`has_interval`]). Its coverage is at least the
/// level when all values are independent and both samples have the same shape, whatever it is. Ties make it conservative. Time
/// and memory grow with the product of the sizes.
pub fn shift(before: &[f64], after: &[f64], level: Level) -> Option<Estimate> {
    let mut differences: Vec<f64> = before.iter().flat_map(|one| after.iter().map(move |other| other - one)).collect();
    let last = differences.len().checked_sub(1)?;
    let mut smallest = |rank: usize| *differences.select_nth_unstable_by(rank, f64::total_cmp).1;
    let interval = excluded(before.len(), after.len(), level).map(|cut| (smallest(cut), smallest(last - cut)));
    Some(Estimate {
        value: (smallest(last / 2) + smallest(last.div_ceil(2))) / 2.0,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    })
}

/// Whether samples of these sizes have an interval: at 95 % from 4 and 4, 3 and 5, or 2 and 8 on.
pub fn has_interval(before: usize, after: usize, level: Level) -> bool {
    excluded(before, after, level).is_some()
}

/// Two samples of these sizes, for the same question about thousands of pairs of them.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    cut: Option<usize>,
}

impl Sizes {
    /// Sizes of the samples before and after.
    pub fn new(before: usize, after: usize, level: Level) -> Self {
        Self { cut: excluded(before, after, level) }
    }

    /// As [`has_interval`].
    pub fn has_interval(&self) -> bool {
        self.cut.is_some()
    }

    /// Whether the interval of [`shift`] leaves zero out, without computing it: the difference that is its end on the side of zero is
    /// beside zero when no more than those outside the interval are not. `false` where there is no interval.
    pub fn is_beside_zero(&self, before: &[f64], after: &[f64]) -> bool {
        let Some(cut) = self.cut else { return false };
        let pairs = before.len() * after.len();
        let count = |is_meant: fn(f64) -> bool| -> usize {
            before.iter().map(|one| after.iter().filter(|other| is_meant(*other - one)).count()).sum()
        };
        let (above, below) = (count(|difference| difference > 0.0), count(|difference| difference < 0.0));
        pairs - above <= cut || pairs - below <= cut
    }
}

/// How many of the sorted differences lie outside the interval on each side: the largest `c` with `P(U <= c) < tail`. `None`
/// when even `c = 0` is too likely, so that no interval of this level exists.
fn excluded(m: usize, n: usize, level: Level) -> Option<usize> {
    let tail = level.tail();
    let (m, n) = (m.min(n), m.max(n));
    if m == 0 {
        return None;
    }
    if m * n > EXACT_LIMIT {
        let (m, n) = (m as f64, n as f64);
        let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
        // The half is the continuity correction: P(U <= c) is the normal area up to c + 1/2.
        let cut = m * n / 2.0 + Normal::standard().inverse_cdf(tail) * deviation - 0.5;
        return (cut >= 0.0).then_some(cut as usize);
    }
    let mut cumulative = 0.0;
    let mut cut = None;
    for (u, probability) in null_distribution(m, n).into_iter().enumerate() {
        cumulative += probability;
        if cumulative >= tail {
            break;
        }
        cut = Some(u);
    }
    cut
}

/// `P(U = u)` for the number `U` of pairs in which the value of the first sample lies above that of the second, when every
/// order of all values is as likely. Values are placed from the smallest on: one of the first sample that is placed above `b` of
/// the second adds `b` pairs.
fn null_distribution(m: usize, n: usize) -> Vec<f64> {
    let last = m * n;
    let mut ways = vec![vec![0.0; last + 1]; m + 1];
    ways[0][0] = 1.0;
    for place in 0..m + n {
        for first in (0..m.min(place + 1)).rev() {
            let second = place - first;
            if second > n {
                continue;
            }
            let (until, from) = ways.split_at_mut(first + 1);
            for (u, ways) in until[first][..=last - second].iter().enumerate() {
                from[0][u + second] += ways;
            }
        }
    }
    let all: f64 = ways[m].iter().sum();
    ways[m].iter().map(|ways| ways / all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Permeability constants of the human chorioamnion at term and between 12 and 26 weeks: Hollander and Wolfe (1973), table
    /// 4.1, also an example of `?wilcox.test` in R. They print the estimate -0.305 and the 96 % interval (-0.76, 0.15), which
    /// is also that of 95 %: the next shorter one covers 94 %.
    const TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    const WEEKS: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

    #[test]
    fn the_interval_equals_the_published_one_for_the_permeability_data() {
        let estimate = shift(&TERM, &WEEKS, Level::P95).expect("there are values");
        let (low, high) = estimate.interval().expect("large enough");
        for (got, want) in [estimate.value, low, high].into_iter().zip([-0.305, -0.76, 0.15]) {
            assert!((got - want).abs() < 1e-9, "got {got}, expected {want}");
        }
        let back = shift(&WEEKS, &TERM, Level::P95).expect("there are values");
        assert!((back.value - 0.305).abs() < 1e-9 && (back.low.unwrap_or(0.0) + 0.15).abs() < 1e-9, "{back:?}");
    }

    #[test]
    fn the_distribution_gives_the_p_value_of_r_for_the_permeability_data() {
        // wilcox.test(x, y, alternative = "g"): W = 35, p-value = 0.1272
        let tail: f64 = null_distribution(10, 5)[35..].iter().sum();
        assert!((tail - 0.1272).abs() < 5e-5, "{tail}");
    }

    #[test]
    fn cuts_equal_the_critical_values_of_mann_and_whitneys_u() {
        // Two-sided at 5 %, any table of U.
        let table = [
            (3, 5, 0),
            (4, 4, 0),
            (2, 8, 0),
            (4, 6, 2),
            (5, 5, 2),
            (6, 6, 5),
            (5, 10, 8),
            (7, 9, 12),
            (8, 8, 13),
            (10, 10, 23),
            (15, 15, 64),
            (20, 20, 127),
        ];
        for (m, n, critical) in table {
            assert_eq!(excluded(m, n, Level::P95), Some(critical), "{m} and {n}");
            assert_eq!(excluded(n, m, Level::P95), Some(critical), "{n} and {m}");
        }
    }

    #[test]
    fn too_few_values_have_an_estimate_and_no_interval() {
        for (m, n) in [(1, 1), (3, 3), (3, 4), (2, 7), (1, 38), (0, 9)] {
            assert!(!has_interval(m, n, Level::P95), "{m} and {n}");
        }
        let three = shift(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0], Level::P95).expect("there are values");
        assert_eq!((three.value, three.interval()), (10.0, None));
        let four = shift(&[1.0, 2.0, 3.0, 4.0], &[11.0, 12.0, 13.0, 14.0], Level::P95).expect("there are values");
        assert_eq!((four.value, four.interval()), (10.0, Some((7.0, 13.0))));
        assert_eq!(shift(&[], &[1.0], Level::P95), None);
    }

    #[test]
    fn the_normal_approximation_joins_the_exact_distribution_within_one_rank() {
        let tail = Level::P95.tail();
        for (m, n) in [(51, 50), (30, 84)] {
            let approximate = excluded(m, n, Level::P95).expect("large enough");
            let cumulative = null_distribution(m, n).into_iter().scan(0.0, |sum, probability| {
                *sum += probability;
                Some(*sum)
            });
            let exact = cumulative.take_while(|sum| *sum < tail).count() - 1;
            assert!(approximate.abs_diff(exact) <= 1, "{m} and {n}: {approximate} against {exact}");
        }
    }

    #[test]
    fn what_is_beside_zero_is_what_the_interval_says() {
        let before = [3.0, 1.0, 4.0, 1.5, 5.0];
        let mut outcomes = std::collections::BTreeSet::new();
        for step in -40..40 {
            let after = [2.0, 7.0, 1.0, 8.0, 2.5, 3.0].map(|value| value + f64::from(step) / 4.0);
            let (low, high) = shift(&before, &after, Level::P95).and_then(|found| found.interval()).expect("enough");
            let is_beside = low > 0.0 || high < 0.0;
            assert_eq!(Sizes::new(5, 6, Level::P95).is_beside_zero(&before, &after), is_beside, "{low} to {high}");
            outcomes.insert((is_beside, low > 0.0));
        }
        assert_eq!(outcomes.len(), 3, "above, below and neither were seen");
        assert!(!Sizes::new(4, 4, Level::P95).is_beside_zero(&[1.0; 4], &[1.0; 4]), "no difference at all");
        let few = Sizes::new(1, 1, Level::P95);
        assert!(!few.has_interval() && !few.is_beside_zero(&[1.0], &[100.0]));
    }

    #[test]
    fn the_ratio_is_that_of_the_logarithms_and_needs_positive_values() {
        let before = [10.0, 11.0, 12.0, 13.0];
        let halved = before.map(|value| value / 2.0);
        let found = independent(&before, &halved, Level::P95).expect("there are values");
        let ratio = found.ratio.expect("all are positive");
        assert!((ratio.value - 0.5).abs() < 1e-12, "{ratio:?}");
        let (low, high) = ratio.interval().expect("four and four have one");
        assert!((low - 5.0 / 13.0).abs() < 1e-12 && (high - 0.65).abs() < 1e-12, "{ratio:?}");
        assert_eq!((found.before.value, found.after.value), (11.5, 5.75));
        let gone = independent(&before, &[0.0; 4], Level::P95).expect("there are values");
        assert_eq!((gone.ratio, gone.difference.interval()), (None, Some((-13.0, -10.0))));
        assert_eq!(independent(&before, &[f64::NAN], Level::P95), None);
        assert_eq!(independent(&before, &[], Level::P95), None);
    }
}
