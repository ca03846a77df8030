//! A bisection of two contexts with its answer in a sentence. Leaves its JSON and the figures to `verify`.

mod conclusion;
#[cfg(test)]
pub(crate) mod sample;

use slowpath_verify::context_bisection::printed::ContextBisection;
use slowpath_verify::context_bisection::{ContextBisected, Wanted, printed_of};

/// What is printed of the launches of a bisection.
pub fn context_bisection_of(wanted: &Wanted, bisected: &ContextBisected) -> ContextBisection {
    printed_of(wanted, bisected, conclusion::of)
}
