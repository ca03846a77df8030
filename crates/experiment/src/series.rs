//! A series of launches in the order in which they ran: does the machine drift, and do neighbours resemble each other?
//!
//! Drift of the values themselves is what blocks are for, and is reported so that a reader knows; pair differences that
//! depend on each other would make their interval too narrow, and are a doubt.

use statrs::distribution::{ContinuousCDF, Normal};

/// Values below which these tests say nothing: the normal approximations of both are poor there.
pub const FEWEST: usize = 10;

/// Below this p-value a drift or a dependence is reported. Two tests of every benchmark would cry wolf too often at 5 %.
pub const TELL_BELOW: f64 = 0.01;

/// Whether the values rise or fall: Mann-Kendall (H. B. Mann, Econometrica 13 (1945), 245-259), corrected for ties, with
/// the normal approximation and its continuity correction. The two-sided p-value; `None` for fewer than [`FEWEST`] values
/// and for equal ones.
pub fn trend(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < FEWEST {
        return None;
    }
    let mut score = 0i64;
    for (index, earlier) in values.iter().enumerate() {
        for later in &values[index + 1..] {
            score += match later.total_cmp(earlier) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Less => -1,
                std::cmp::Ordering::Equal => 0,
            };
        }
    }
    let term = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let ties: f64 = ties(values).map(|count| term(count as f64)).sum();
    let variance = (term(n as f64) - ties) / 18.0;
    (variance > 0.0).then(|| two_sided((score.abs() as f64 - 1.0).max(0.0) / variance.sqrt()))
}

/// Whether neighbours are alike or alternate: the rank version of von Neumann's ratio (R. Bartels, Journal of the American
/// Statistical Association 77 (1982), 40-46) with its normal approximation. The two-sided p-value; `None` as for [`trend`].
pub fn dependence(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < FEWEST {
        return None;
    }
    let ranks = mid_ranks(values);
    let mean = (n as f64 + 1.0) / 2.0;
    let spread: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let steps: f64 = ranks.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let n = n as f64;
    // Bartels's mean and variance of the ratio of independent values.
    let variance = 4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2));
    Some(two_sided((steps / spread - 2.0).abs() / variance.sqrt()))
}

fn two_sided(z: f64) -> f64 {
    2.0 * Normal::standard().sf(z)
}

/// Sizes of the groups of equal values.
fn ties(values: &[f64]) -> impl Iterator<Item = usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sizes: Vec<usize> = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect();
    sizes.into_iter()
}

/// Ranks from 1; equal values share the mean of theirs.
pub(crate) fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = before as f64 + (group.len() as f64 + 1.0) / 2.0;
        for index in group {
            ranks[*index] = rank;
        }
        before += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_series_drifts_and_an_alternating_one_depends() {
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        let alternating: Vec<f64> = (0..12).map(|i| f64::from(i % 2)).collect();
        assert!(trend(&rising).unwrap() < 1e-5 && dependence(&rising).unwrap() < 1e-3);
        assert!(trend(&alternating).unwrap() > 0.2, "{:?}", trend(&alternating));
        assert!(dependence(&alternating).unwrap() < TELL_BELOW);
    }

    #[test]
    fn equal_values_and_short_series_say_nothing() {
        assert_eq!((trend(&[1.0; 20]), dependence(&[1.0; 20])), (None, None));
        assert_eq!((trend(&[1.0, 2.0]), dependence(&[1.0, 2.0])), (None, None));
    }

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(mid_ranks(&[5.0, 1.0, 5.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }
}
