//! What an experiment of a given size can see.
//!
//! Owns the minimum detectable effect of an experiment that has run and the number of pairs to plan for the next.
//! Neither looks at the effect that was found: power computed from the observed effect says nothing beyond the
//! interval itself (J. M. Hoenig and D. M. Heisey, The American Statistician 55 (2001), 19-24).

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Estimate, Level, median};

/// The share of repetitions in which an effect of the stated size is found.
pub const POWER: f64 = 0.8;

/// Raises the minimum detectable effect by 5 %. The normal theory needs 1.43 half-widths at 95 %; simulation with 15 to 50
/// pairs needs 1.39 to 1.45 under normal noise, 1.45 to 1.48 under Student's t with 3 degrees of freedom and 1.51 to
/// 1.62 when a tenth of the launches has eight times the noise. 1.05 x 1.43 = 1.50 lies in the midst of these.
const TAIL_ALLOWANCE: f64 = 1.05;

/// Pairs needed are `(3.5 sigma / effect)^2`. The factor is `(z(0.975) + z(0.8)) * sqrt(pi / 2)` = 2.80 x 1.253: the
/// standard error of a median of normal values is `sqrt(pi / 2)` times that of their mean. The Hodges-Lehmann
/// estimate needs only `sqrt(pi / 3)` (2.87) under normal noise; the larger factor leaves room for heavier tails, for which
/// simulation at 20 pairs gives 3.1 (normal), 3.3 (t with 3 degrees of freedom) and 3.9 (contaminated as above).
pub const PAIRS_FACTOR: f64 = 3.5;

/// No plan is smaller: with 6 pairs all must agree in sign, which takes an effect of 4.4 `sigma / sqrt(6)`; from 7 on
/// [`PAIRS_FACTOR`] holds under normal noise.
pub const FEWEST_PLANNED_PAIRS: usize = 7;

/// The smallest true difference that an experiment of the same size and noise shows in 80 % of repetitions, in the unit
/// of the estimate: the half-width of the interval times `1.05 (1 + z(0.8) / z(level))`, 1.50 at 95 %.
///
/// `estimate` is an additive one, such as [`crate::Effect::difference`], not a ratio. The half-width already
/// carries the noise, its tails and the number of pairs, which a standard deviation alone does not: at 15 pairs the
/// factor that belongs to a robust standard deviation varies from 3.1 to 4.6 between the noises named above. The
/// figure is itself an estimate: of experiments with 15 pairs and t noise, 80 % state between 0.7 and 1.4 times the
/// median figure. `None` without an interval and when its width is zero, which comes from ties and not from precision.
pub fn minimum_detectable_effect(estimate: &Estimate, level: Level) -> Option<f64> {
    let (low, high) = estimate.interval()?;
    let normal = Normal::standard();
    let factor = 1.0 + normal.inverse_cdf(POWER) / normal.inverse_cdf(1.0 - level.tail());
    let effect = TAIL_ALLOWANCE * factor * (high - low) / 2.0;
    (effect > 0.0).then_some(effect)
}

/// How many pairs to plan to find `effect` with 80 % power at 95 %, given the robust standard deviation of a pair
/// difference in the same unit: `(3.5 sigma / effect)^2`, at least [`FEWEST_PLANNED_PAIRS`].
///
/// `None` when either number is not positive and finite. Rare large outliers need more, up to a quarter at 20 pairs.
pub fn pairs_needed(sigma: f64, effect: f64) -> Option<usize> {
    let usable = |number: f64| number > 0.0 && number.is_finite();
    if !usable(sigma) || !usable(effect) {
        return None;
    }
    let pairs = (PAIRS_FACTOR * sigma / effect).powi(2).ceil();
    // A saturating cast: an absurd ratio gives an absurd number, never a small one.
    Some((pairs as usize).max(FEWEST_PLANNED_PAIRS))
}

/// What [`effect_of`] announces: the factor that noise of which a tenth has eight times the spread needs (see
/// [`PAIRS_FACTOR`]). Less heavy noise finds the announced effect more often than announced.
const ANNOUNCED_FACTOR: f64 = 3.9;

/// The effect that so many pairs find with at least 80 % power at 95 %, also under heavy tails: `3.9 sigma / sqrt(pairs)`.
/// `None` for fewer pairs than [`FEWEST_PLANNED_PAIRS`] and a deviation that is not positive and finite.
pub fn effect_of(sigma: f64, pairs: usize) -> Option<f64> {
    let usable = sigma > 0.0 && sigma.is_finite() && pairs >= FEWEST_PLANNED_PAIRS;
    usable.then(|| ANNOUNCED_FACTOR * sigma / (pairs as f64).sqrt())
}

/// A standard deviation that outliers do not inflate: 1.4826 times the median absolute deviation from the median, times
/// `n / (n - 0.8)` against its bias in small samples (C. Croux and P. J. Rousseeuw, "Time-efficient algorithms for two
/// highly robust estimators of scale", Computational Statistics 1 (1992), 411-428). `None` below two values.
pub fn robust_sigma(differences: &[f64]) -> Option<f64> {
    if differences.len() < 2 {
        return None;
    }
    let centre = median::point(differences)?;
    let deviations: Vec<f64> = differences.iter().map(|value| (value - centre).abs()).collect();
    let n = differences.len() as f64;
    Some(1.4826 * median::point(&deviations)? * n / (n - 0.8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_of_a_95_percent_interval_is_one_and_a_half_half_widths() {
        let estimate = Estimate { value: -40.0, low: Some(-50.0), high: Some(-30.0) };
        let effect = minimum_detectable_effect(&estimate, Level::P95).expect("an interval");
        assert!((effect - 15.0).abs() < 0.02, "{effect}");
    }

    #[test]
    fn no_interval_or_one_of_no_width_promises_nothing() {
        let mut estimate = Estimate { value: 1.0, low: Some(1.0), high: Some(1.0) };
        assert_eq!(minimum_detectable_effect(&estimate, Level::P95), None);
        (estimate.low, estimate.high) = (None, None);
        assert_eq!(minimum_detectable_effect(&estimate, Level::P95), None);
    }

    #[test]
    fn the_factor_for_pairs_is_that_of_a_median() {
        let normal = Normal::standard();
        let derived = (normal.inverse_cdf(0.975) + normal.inverse_cdf(0.8)) * (std::f64::consts::PI / 2.0).sqrt();
        assert!((derived - PAIRS_FACTOR).abs() < 0.02, "{derived}");
    }

    #[test]
    fn twice_the_noise_needs_four_times_the_pairs() {
        assert_eq!(pairs_needed(2.0, 1.0), Some(49));
        assert_eq!(pairs_needed(4.0, 1.0), Some(196));
        assert_eq!(pairs_needed(0.1, 1.0), Some(FEWEST_PLANNED_PAIRS));
        for (sigma, effect) in [(0.0, 1.0), (1.0, 0.0), (1.0, -1.0), (f64::NAN, 1.0)] {
            assert_eq!(pairs_needed(sigma, effect), None);
        }
    }

    #[test]
    fn one_wild_value_hardly_moves_the_robust_standard_deviation() {
        let calm: Vec<f64> = (-10..=10).map(f64::from).collect();
        let mut wild = calm.clone();
        wild[20] = 1e9;
        let (before, after) = (robust_sigma(&calm), robust_sigma(&wild));
        assert_eq!(before, Some(1.4826 * 5.0 * 21.0 / 20.2));
        assert_eq!(before, after);
        assert_eq!(robust_sigma(&[1.0]), None);
    }
}
