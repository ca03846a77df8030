//! The JSON of a diagnosis: names and shape of what it found, tried and concluded, and reading one back.
//!
//! Leaves filling it to the rest of this crate, and screens and pages to `report`.

mod both_launches;
mod diagnosis;
mod hidden_by_root;
mod saved_diagnosis;
mod verdict;

pub use diagnosis::{ArmRole, ArmSummary, DIAGNOSE_SCHEMA, Diagnosis, LaunchSummary, OtherLaunches, RunningSummary};
pub use hidden_by_root::{DenyingRule, HiddenArtifact, HiddenByRoot};
pub use saved_diagnosis::{DiagnosisError, MOST_DIAGNOSIS_BYTES};
pub use verdict::{Decision, GapShare, MetricChange, Verdict};
