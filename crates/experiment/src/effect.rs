//! Two arms compared by pairs from the same block.
//!
//! Pairing removes whatever the two launches of a block share: drift, load, temperature. Whether the effect is
//! good news is for [`crate::outcome`] to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::{Complete, SampleError, Samples};
use crate::{Estimate, Level, median, power, signed_rank};

/// What changed between a baseline arm and a treated arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// Treated minus baseline, in the unit of the samples: the Hodges-Lehmann estimate over the pairs with the
    /// signed-rank interval. `None` without a single pair.
    pub difference: Option<Estimate>,
    /// Treated over baseline, from the same inference on differences of logarithms. `None` without pairs or when
    /// a value is not positive.
    pub ratio: Option<Estimate>,
    /// Median of all launches of the baseline arm, paired or not; describes the arm, takes no part in the comparison.
    pub baseline: Option<Estimate>,
    /// The same for the treated arm.
    pub treated: Option<Estimate>,
    /// Number of blocks in which both arms have a value.
    pub pairs: usize,
    /// Number of blocks left out because one of the two arms has no value there.
    pub dropped: usize,
    /// The smallest true difference that this number of pairs with this noise would show in 80 % of repetitions, in the
    /// unit of the samples; see [`power::minimum_detectable_effect`]. `None` when it cannot be determined.
    pub minimum_detectable_effect: Option<f64>,
    /// Robust standard deviation of a pair difference, in the unit of the samples; with [`power::pairs_needed`] it
    /// plans the next experiment. `None` below two pairs.
    pub sigma: Option<f64>,
    /// Confidence level of all intervals here, as a fraction.
    pub level: f64,
}

/// Compares the arm `treated` with the arm `baseline`.
///
/// # Errors
/// [`SampleError::NoSuchArm`]. Having no pairs is a result, not an error.
pub fn paired(samples: &Samples, baseline: usize, treated: usize, level: Level) -> Result<Effect, SampleError> {
    let Complete { rows, dropped } = samples.complete([baseline, treated])?;
    let differences: Vec<f64> = rows.iter().map(|[before, after]| after - before).collect();
    let logarithms: Option<Vec<f64>> =
        rows.iter().map(|&[before, after]| (before > 0.0 && after > 0.0).then(|| after.ln() - before.ln())).collect();
    let difference = signed_rank::centre(&differences, level);
    Ok(Effect {
        difference,
        ratio: logarithms
            .and_then(|logarithms| signed_rank::centre(&logarithms, level))
            .map(|estimate| estimate.map(f64::exp)),
        baseline: median::median(&samples.values(baseline)?, level),
        treated: median::median(&samples.values(treated)?, level),
        pairs: rows.len(),
        dropped,
        minimum_detectable_effect: difference.and_then(|estimate| power::minimum_detectable_effect(&estimate, level)),
        sigma: power::robust_sigma(&differences),
        level: level.fraction(),
    })
}

/// The two-sided p-value of no difference between two arms, from the pairs alone; see [`signed_rank::p_value`].
///
/// # Errors
/// [`SampleError::NoSuchArm`].
pub fn p_value(samples: &Samples, baseline: usize, treated: usize) -> Result<Option<f64>, SampleError> {
    let rows = samples.complete([baseline, treated])?.rows;
    let differences: Vec<f64> = rows.iter().map(|[before, after]| after - before).collect();
    Ok(signed_rank::p_value(&differences))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_arms(pairs: &[[f64; 2]]) -> Samples {
        let mut samples = Samples::new(2, pairs.len());
        for (block, pair) in pairs.iter().enumerate() {
            for (arm, &value) in pair.iter().enumerate() {
                samples.set(arm, block, value).expect("the cell exists");
            }
        }
        samples
    }

    #[test]
    fn the_difference_is_treated_minus_baseline_and_the_ratio_treated_over_baseline() {
        let pairs: Vec<[f64; 2]> = (1..=8).map(|i| [f64::from(10 * i), f64::from(5 * i)]).collect();
        let effect = paired(&two_arms(&pairs), 0, 1, Level::P95).expect("the arms exist");
        assert_eq!(effect.difference.map(|d| d.value), Some(-22.5));
        let ratio = effect.ratio.expect("all values are positive");
        let (low, high) = ratio.interval().expect("eight pairs are enough");
        for part in [low, ratio.value, high] {
            assert!((part - 0.5).abs() < 1e-12);
        }
        assert_eq!(effect.baseline.map(|m| m.value), Some(45.0));
        assert_eq!(effect.treated.map(|m| m.value), Some(22.5));
    }

    #[test]
    fn an_effect_without_pairs_has_no_difference_but_counts_what_it_dropped() {
        let mut samples = Samples::new(2, 3);
        samples.set(0, 0, 1.0).expect("the cell exists");
        samples.set(1, 1, 1.0).expect("the cell exists");
        let effect = paired(&samples, 0, 1, Level::P95).expect("the arms exist");
        assert_eq!((effect.pairs, effect.dropped), (0, 3));
        assert_eq!((effect.difference, effect.ratio), (None, None));
        assert_eq!(effect.baseline.map(|m| m.value), Some(1.0));
    }

    #[test]
    fn a_value_that_is_not_positive_leaves_the_difference_and_takes_the_ratio() {
        let effect = paired(&two_arms(&[[0.0, 1.0], [2.0, 3.0]]), 0, 1, Level::P95).expect("the arms exist");
        assert_eq!(effect.difference.map(|d| d.value), Some(1.0));
        assert_eq!(effect.ratio, None);
    }
}
