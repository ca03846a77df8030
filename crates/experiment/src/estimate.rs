//! A number with its uncertainty. Units and names stay with the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point estimate with its confidence interval, in the unit of the samples (or a plain ratio where the
/// producing function says so).
///
/// `low` and `high` are both `None` when the sample is too small for the requested level to exist at all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl Estimate {
    /// Both ends of the interval, or `None` where there is no interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// The same estimate through a monotonically increasing function, such as `exp` from logarithms to ratios.
    pub(crate) fn map(self, increasing: impl Fn(f64) -> f64) -> Self {
        Self { value: increasing(self.value), low: self.low.map(&increasing), high: self.high.map(&increasing) }
    }
}
