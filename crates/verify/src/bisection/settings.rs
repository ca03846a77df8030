//! What the caller of a bisection chooses, and how its time is divided among the phases.
//!
//! Stands apart from the search, because most of its steps read it. Leaves shares of the error to the steps that
//! spend them, and which candidates there are to [`super::Candidate`].

use slowpath_launch::Metric;
use std::time::Duration;

/// How a bisection is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// What is compared; less is better.
    pub metric: Metric,
    /// All of the time.
    pub max_time: Duration,
    /// Seed of the order of the launches.
    pub seed: u64,
    /// Whether the two sides can be launched as they were given ([`super::Choice::Given`]), beside their reproduction.
    pub given: bool,
    /// Smallest effect that matters, as a logarithm of a ratio. A tenth of the gap matters at least.
    pub margin: f64,
}

/// Shares of the time at which the phases end at the latest. What the first does not use, the next has: the reproduction, where the sides
/// were given, else the rounds.
pub(super) const GAP_UNTIL: f64 = 0.4;
pub(super) const REPRODUCTION_UNTIL: f64 = 0.55;
pub(super) const ROUNDS_UNTIL: f64 = 0.92;

/// A difference of 2 % or less is none that a user would act on.
pub const MARGIN: f64 = crate::judgement::MARGIN;
