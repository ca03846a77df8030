//! Confidence levels.

use thiserror::Error;

/// A confidence level strictly between 0 and 1, such as 0.95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level(f64);

/// The requested confidence level is not strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("a confidence level must lie strictly between 0 and 1, not {0}")]
pub struct LevelError(f64);

impl Level {
    /// 95 %, the level of every interval that slowpath prints.
    pub const P95: Self = Self(0.95);

    /// A level from a fraction (0.95, not 95).
    ///
    /// # Errors
    /// [`LevelError`] when the fraction is not strictly between 0 and 1.
    pub fn new(fraction: f64) -> Result<Self, LevelError> {
        if fraction > 0.0 && fraction < 1.0 { Ok(Self(fraction)) } else { Err(LevelError(fraction)) }
    }

    /// The level as a fraction.
    pub fn fraction(self) -> f64 {
        self.0
    }

    /// The probability that an interval of this level misses.
    pub fn error(self) -> f64 {
        1.0 - self.0
    }

    /// The level that each of `comparisons` needs so that all hold together with this level (Bonferroni: the error is divided).
    #[must_use]
    pub fn shared_by(self, comparisons: usize) -> Self {
        Self(1.0 - self.error() / comparisons.max(1) as f64)
    }

    /// The probability left to each side of a two-sided interval.
    pub(crate) fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

impl Default for Level {
    fn default() -> Self {
        Self::P95
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_several_share_divides_the_error() {
        assert!((Level::P95.shared_by(5).error() - 0.01).abs() < 1e-12);
        assert_eq!(Level::P95.shared_by(0), Level::P95.shared_by(1));
    }

    #[test]
    fn a_level_outside_zero_to_one_is_refused() {
        for bad in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            assert!(Level::new(bad).is_err(), "{bad} was accepted");
        }
        assert_eq!(Level::new(0.95), Ok(Level::P95));
    }
}
