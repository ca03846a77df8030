//! From arms to a verdict: launches of every arm in counterbalanced blocks, and what they allow to say.
//!
//! Owns: one cold or warm launch in a lab ([`lab_launch`]), the running of the blocks ([`comparison`]), and the rule by
//! which a fix is judged against the untreated launch and its shams ([`judgement`]). Leaves the statistics to
//! `experiment`, the conditions to `lab`, the running of one launch to `launch`, and words for the reader to `report`.

pub mod comparison;
pub mod judgement;
pub mod lab_launch;

pub use comparison::{Arm, ArmResult, Comparison, ComparisonError, Role, Sample, compare};
pub use judgement::{Judgement, judge};
pub use lab_launch::{LabLaunchError, LaunchInLab, cold, warm};
