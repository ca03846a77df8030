//! The share of trials that came out one way.

use crate::Level;
use statrs::distribution::{Beta, ContinuousCDF};

/// The exact interval of a share, `hits` of `trials` (C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404-413). It
/// covers at least at its level, whatever the true share. `None` without trials, or with more hits than trials.
pub fn interval(hits: u64, trials: u64, level: Level) -> Option<(f64, f64)> {
    if trials == 0 || hits > trials {
        return None;
    }
    let (hits, misses) = (hits as f64, (trials - hits) as f64);
    let low = if hits == 0.0 { 0.0 } else { Beta::new(hits, misses + 1.0).ok()?.inverse_cdf(level.tail()) };
    let high = if misses == 0.0 { 1.0 } else { Beta::new(hits + 1.0, misses).ok()?.inverse_cdf(1.0 - level.tail()) };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_those_of_the_tables() {
        // R: binom.test(1, 20)$conf.int and binom.test(0, 20)$conf.int
        let (low, high) = interval(1, 20, Level::P95).unwrap();
        assert!((low - 0.001_265).abs() < 1e-5 && (high - 0.248_733).abs() < 1e-5, "{low} {high}");
        let (low, high) = interval(0, 20, Level::P95).unwrap();
        assert!(low == 0.0 && (high - 0.168_433).abs() < 1e-5, "{high}");
        assert_eq!(interval(20, 20, Level::P95).unwrap().1, 1.0);
        assert_eq!((interval(0, 0, Level::P95), interval(2, 1, Level::P95)), (None, None));
    }
}
