//! How much of the gap between cold and warm a treatment removes.
//!
//! Owns the share `(cold - treated) / (cold - warm)` and its interval. What makes a launch cold or warm belongs to
//! the caller.
//!
//! A ratio of two noisy differences has no usable normal theory at 15 to 20 blocks. The interval here inverts a test,
//! as Fieller's does (E. C. Fieller, Journal of the Royal Statistical Society B 16 (1954), 175-185), but with the
//! signed-rank test in the place of Student's: a share `s` belongs to it when the block values
//! `(cold - treated) - s (cold - warm)` are compatible with the centre zero. It needs no seed.
//!
//! It was chosen against the block bootstrap by simulation: 2,000 experiments for each of noise 3 % and 10 %, normal, lognormal
//! and t with 3 degrees of freedom, 15 and 20 blocks, true shares 0, 0.65 and 1, block drift 5 %, 400 resamples.
//! Coverage of nominal 95 % intervals, worst to best, and mean width at 10 % normal noise, 15 blocks, share 1:
//!
//! | interval | coverage | width |
//! |---|---|---|
//! | this one | 0.942 - 0.964 | 0.106 |
//! | percentile bootstrap, ratio of Hodges-Lehmann differences | 0.929 - 0.974 | 0.116 |
//! | BCa bootstrap of the same | 0.914 - 0.943 | 0.117 |
//! | percentile bootstrap, ratio of median differences | 0.918 - 0.992 | 0.201 |
//! | BCa bootstrap of the same | 0.880 - 0.945 | 0.187 |
//!
//! Its weakness is skew: when a tenth of the launches of every arm is late by 3 to 13 times the noise, the coverage of
//! a share of 0.65 falls to 0.934.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::{Complete, SampleError, Samples};
use crate::signed_rank::{self, walsh_sums};
use crate::{Estimate, Level};

/// The share of the gap between cold and warm that the treated arm removes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareRemoved {
    /// 0: as slow as cold; 1: as fast as warm; below 0 and above 1 are possible. `None` when the gap itself is not
    /// distinguishable from zero at this level (or is negative): a share of nothing has no value.
    pub share: Option<Estimate>,
    /// The gap: cold minus warm, in the unit of the samples. `None` without a single complete block.
    pub gap: Option<Estimate>,
    /// Number of blocks in which all three arms have a value.
    pub blocks: usize,
    /// Number of blocks left out because one of the three arms has no value there.
    pub dropped: usize,
    /// Confidence level of both intervals, as a fraction.
    pub level: f64,
}

/// The share of the gap between the arms `cold` and `warm` that the arm `treated` removes.
///
/// # Errors
/// [`SampleError::NoSuchArm`]. An experiment that cannot answer is a result, not an error.
pub fn share_removed(
    samples: &Samples,
    cold: usize,
    treated: usize,
    warm: usize,
    level: Level,
) -> Result<ShareRemoved, SampleError> {
    let Complete { rows, dropped } = samples.complete([cold, treated, warm])?;
    let saved: Vec<f64> = rows.iter().map(|[cold, treated, _]| cold - treated).collect();
    let gaps: Vec<f64> = rows.iter().map(|[cold, _, warm]| cold - warm).collect();
    Ok(ShareRemoved {
        share: share(&saved, &gaps, level),
        gap: signed_rank::centre(&gaps, level),
        blocks: rows.len(),
        dropped,
        level: level.fraction(),
    })
}

/// All `s` for which the signed-rank test at this level does not reject that `saved - s * gaps` is centred on zero.
///
/// With `A` and `B` the Walsh averages of `saved` and `gaps`, the statistic at `s` is the number of `A - s B` above
/// zero. It changes only where `s` passes one of the ratios `A / B`, downwards for a positive `B` and upwards for a
/// negative one, so one walk over the sorted ratios visits every value it can take.
fn share(saved: &[f64], gaps: &[f64], level: Level) -> Option<Estimate> {
    let cut = signed_rank::excluded(saved.len(), level)? as i64;
    let (numerators, denominators) = (walsh_sums(saved), walsh_sums(gaps));
    let total = numerators.len() as i64;
    let mut steps: Vec<(f64, i64)> = Vec::with_capacity(numerators.len());
    let mut above = 0;
    for (numerator, denominator) in numerators.into_iter().zip(denominators) {
        if denominator == 0.0 {
            above += i64::from(numerator > 0.0);
        } else {
            above += i64::from(denominator > 0.0);
            let step = if denominator > 0.0 { -1 } else { 1 };
            steps.push((numerator / denominator, step));
        }
    }
    // At minus infinity the statistic is that of the gaps alone. Unless the test rejects there, with a positive gap,
    // the gap is not distinguishable from zero and the accepted set is unbounded.
    if above < total - cut {
        return None;
    }
    steps.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut low, mut high) = (None, None);
    let (mut centre_low, mut centre_high) = (None, None);
    for (ratio, step) in steps {
        let before = above;
        above += step;
        // Accepted values form a set that can have holes when some Walsh average of the gaps is negative; reporting
        // its hull can only add coverage.
        let accepted = |statistic: i64| cut < statistic && statistic < total - cut;
        if accepted(above) || accepted(before) {
            low = low.or(Some(ratio));
            high = Some(ratio);
        }
        if 2 * above <= total {
            centre_low = centre_low.or(Some(ratio));
        }
        if 2 * before >= total {
            centre_high = Some(ratio);
        }
    }
    Some(Estimate { value: (centre_low? + centre_high?) / 2.0, low: Some(low?), high: Some(high?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Noise without a pattern: multiples of the golden ratio modulo 1, centred.
    fn jitter(index: usize) -> f64 {
        (index as f64 * 0.618_033_988_749_895).fract() - 0.5
    }

    fn three_arms(blocks: usize, cold: f64, treated: f64, warm: f64) -> Samples {
        let mut samples = Samples::new(3, blocks);
        for block in 0..blocks {
            for (arm, level) in [cold, treated, warm].into_iter().enumerate() {
                let value = level + jitter(3 * block + arm);
                samples.set(arm, block, value).expect("the cell exists");
            }
        }
        samples
    }

    #[test]
    fn a_treatment_half_way_to_warm_removes_half_of_the_gap() {
        let result = share_removed(&three_arms(12, 90.0, 60.0, 30.0), 0, 1, 2, Level::P95).expect("arms");
        let share = result.share.expect("a clear gap");
        let (low, high) = share.interval().expect("twelve blocks are enough");
        assert!(low < share.value && share.value < high);
        assert!((share.value - 0.5).abs() < 0.01 && high - low < 0.02);
        assert!((result.gap.expect("blocks").value - 60.0).abs() < 1.0);
    }

    #[test]
    fn a_treatment_slower_than_cold_has_a_negative_share() {
        let result = share_removed(&three_arms(12, 90.0, 120.0, 30.0), 0, 1, 2, Level::P95).expect("arms");
        assert!((result.share.expect("a clear gap").value + 0.5).abs() < 0.01);
    }

    #[test]
    fn without_a_gap_above_zero_or_with_too_few_blocks_there_is_no_share() {
        for samples in
            [three_arms(12, 90.0, 60.0, 90.0), three_arms(12, 30.0, 60.0, 90.0), three_arms(5, 90.0, 60.0, 30.0)]
        {
            let result = share_removed(&samples, 0, 1, 2, Level::P95).expect("arms");
            assert_eq!(result.share, None);
            assert!(result.gap.is_some());
        }
    }

    #[test]
    fn a_block_with_a_gap_in_any_of_the_three_arms_is_dropped_and_counted() {
        let full = three_arms(9, 90.0, 60.0, 30.0);
        let mut samples = Samples::new(3, 10);
        for block in 0..9 {
            for arm in 0..3 {
                let value = full.get(arm, block).expect("filled above");
                samples.set(arm, block, value).expect("the cell exists");
            }
        }
        samples.set(0, 9, 1e6).expect("the cell exists");
        let result = share_removed(&samples, 0, 1, 2, Level::P95).expect("arms");
        assert_eq!((result.blocks, result.dropped), (9, 1));
        let expected = share_removed(&full, 0, 1, 2, Level::P95).expect("arms");
        assert_eq!(result.share, expected.share);
    }

    proptest! {
        /// The walk over ratios against the definition: outside the interval the test rejects, just inside it accepts.
        #[test]
        fn the_interval_ends_where_the_signed_rank_test_starts_to_reject(
            rows in proptest::collection::vec((-50.0..150.0f64, -20.0..100.0f64), 6..25)
        ) {
            let (saved, gaps): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let accepts = |s: f64| {
                let residuals: Vec<f64> =
                    saved.iter().zip(&gaps).map(|(saved, gap)| saved - s * gap).collect();
                let (low, high) = signed_rank::centre(&residuals, Level::P95)
                    .and_then(|estimate| estimate.interval())
                    .expect("six values and more");
                low <= 0.0 && 0.0 <= high
            };
            match share(&saved, &gaps, Level::P95) {
                Some(estimate) => {
                    let (low, high) = estimate.interval().expect("never without");
                    let step = 1e-9 * (1.0 + low.abs() + high.abs());
                    prop_assert!(low <= estimate.value && estimate.value <= high);
                    prop_assert!(!accepts(low - step) && accepts(low + step));
                    prop_assert!(!accepts(high + step) && accepts(high - step));
                }
                None => {
                    let gap = signed_rank::centre(&gaps, Level::P95)
                        .and_then(|estimate| estimate.interval())
                        .expect("six values and more");
                    prop_assert!(gap.0 <= 0.0, "a gap of {gap:?} has no share");
                }
            }
        }
    }
}
