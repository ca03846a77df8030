//! How much two choices differ.

use slowpath_experiment::{Estimate, Level, signed_rank};

/// The difference of two choices: an estimate of the logarithm of their ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRatio {
    /// Logarithm of the ratio, with its interval.
    pub estimate: Estimate,
    /// Pairs from the same blocks.
    pub pairs: usize,
    /// Level of the interval.
    pub level: Level,
}

impl LogRatio {
    /// Of differences of logarithms; `None` without any.
    pub(super) fn of(pairs: &[f64], level: Level) -> Option<Self> {
        Some(Self { estimate: signed_rank::centre(pairs, level)?, pairs: pairs.len(), level })
    }

    /// Whether the whole interval is above zero.
    pub fn is_above_zero(&self) -> bool {
        self.estimate.low.is_some_and(|low| low > 0.0)
    }

    /// Whether the whole interval is below `margin`.
    pub fn is_below(&self, margin: f64) -> bool {
        self.estimate.high.is_some_and(|high| high < margin)
    }
}
