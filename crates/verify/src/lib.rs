//! From arms to a verdict: launches of every arm in counterbalanced blocks, and what they allow to say.
//!
//! Owns: a lab for a target ([`lab_session`]), one cold or warm launch in it ([`lab_launch`]) and several ([`lab_launches`]), launches under conditions
//! ([`conditions`]) and in blocks ([`benchmark`]), one of them recorded ([`recorded_launch`]), the numbers of the machine
//! around a launch ([`host_activity`]), the running of the blocks ([`comparison`]), the rule by which a fix is judged against the
//! untreated launch and its shams ([`judgement`]), the arms and shams that are made of treatments ([`treated`]), the arms of a diagnosis and what each is for
//! ([`declared_arms`]), when enough is launched for that ([`until_decided`]), and the search for the difference that makes one of
//! two ways slower ([`bisection`], of two contexts [`context_bisection`]), pages visited in browsers ([`scenario`]), and how long children take until they are ready
//! ([`children`]), and which way to have a child of a zygote's program is the shortest ([`zygote_bench`]). It also says what works on a machine
//! ([`doctor`]). Leaves the statistics to `experiment`, the conditions to `lab`, the running of one launch to `launch`, and
//! words for the reader to `report`.

pub mod benchmark;
pub mod bisection;
pub mod children;
pub mod children_of_recordings;
pub mod comparison;
pub mod conditions;
pub mod context_bisection;
pub mod declared_arms;
pub mod doctor;
pub mod host_activity;
pub mod judgement;
pub mod lab_launch;
pub mod lab_launches;
pub mod lab_session;
pub mod printed;
pub mod recorded_launch;
pub mod scenario;
pub mod treated;
pub mod until_decided;
pub mod zygote_bench;

pub use comparison::{
    Arm, ArmResult, Comparison, ComparisonError, Made, Measured, NextBlock, Role, Sample, compare, compare_until,
    matrix,
};
pub use declared_arms::DeclaredArm;
pub use host_activity::{HostActivity, HostCounters, Moment};
pub use judgement::{Judgement, judge};
pub use lab_launch::{LabLaunchError, LaunchInLab, cold, warm};
pub use slowpath_launch::{Measures, Metric, measures};
pub use until_decided::UntilDecided;
