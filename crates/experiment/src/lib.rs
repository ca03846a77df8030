//! Design and inference of comparisons: which arm runs when, and what the measurements allow to say.
//!
//! The crate is pure. Its input is a matrix of numbers (arms by blocks) and a seed; it knows nothing of
//! processes, files or clocks, and it prints nothing. Running the launches, deciding which of them count, and
//! turning an [`Outcome`] into a verdict about a fix belong to the callers.
//!
//! The path through the crate:
//!
//! 1. [`design::schedule`] gives the order of the arms in every block;
//! 2. the caller runs that order and fills [`Samples`], leaving failed launches empty;
//! 3. [`effect::paired`] compares two arms, [`gap::share_removed`] three;
//! 4. [`outcome::judge`] applies the decision rule, and [`power`] says what the experiment could have seen.
//!
//! Values are `f64` of one unit that the caller chose; lower is better only in [`outcome`].
//!
//! Beside that path: [`rank_sum`] for samples that no block pairs, [`looks`] for experiments that stop when they know enough, [`quantile`]s, [`multiple`] questions, and
//! what a reader must know of the launches ([`outliers`], [`series`]).
//!
//! Every interval comes from the exact null distribution of a rank statistic, so that its coverage holds for
//! heavy tails and does not rest on large samples; `tests/coverage.rs` checks it by simulation. An interval
//! covers one comparison: whoever looks at several arms divides the error among them, whoever looks repeatedly uses
//! [`looks`].

pub mod design;
pub mod effect;
pub mod estimate;
pub mod gap;
pub mod level;
pub mod looks;
pub mod median;
pub mod multiple;
pub mod outcome;
pub mod outliers;
pub mod power;
pub mod proportion;
pub mod quantile;
pub mod rank_sum;
pub mod sample;
pub mod series;
pub mod signed_rank;

pub use effect::Effect;
pub use estimate::Estimate;
pub use gap::ShareRemoved;
pub use level::Level;
pub use outcome::Outcome;
pub use rank_sum::Independent;
pub use sample::Samples;
