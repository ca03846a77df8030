//! Why a bisection was given up.
//!
//! Owns what ends it before there is anything to say; ends with a part of an answer are `outcome`'s. The error of a launch is of the
//! caller's own type: what it means, the exit code and a remedy are left to the caller.

use slowpath_launch::Metric;

/// Why a bisection was given up.
#[derive(Debug, thiserror::Error)]
pub enum BisectionError<E: std::error::Error + 'static> {
    /// A launch could not be made.
    #[error("a launch could not be made")]
    Launch(#[source] E),
    /// One of the two sides, or its reproduction, was never ready.
    #[error("{0}")]
    NeverReady(String),
    /// Most launches of one of the sides have no value of the metric, or zero, which is no part of a ratio.
    #[error("{} {} in most launches of {side}", metric.name(), if *is_zero { "is zero" } else { "has no value" })]
    NoValue {
        /// What was to be compared.
        metric: Metric,
        /// Which of the sides, in words.
        side: &'static str,
        /// It is zero; else it is absent.
        is_zero: bool,
        /// Metrics that all launches of both sides have.
        others: Vec<Metric>,
    },
    /// The user asked to stop before the first block was whole.
    #[error("stopped on request")]
    Stopped,
    /// Not one block ends in the time.
    #[error("two launches of each side take longer than the time allows")]
    TooLong,
}
