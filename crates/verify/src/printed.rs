//! Outcomes and estimates as every command prints them.

pub use slowpath_analysis::printed::quantities::of_estimate as quantity;
pub use slowpath_experiment::Outcome;
