//! What a launch as root cannot show: artifacts that it read and that another user may not read.
//!
//! Owns the shape. Leaves looking to `diagnose`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Artifacts of a launch as root that another user may not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenByRoot {
    /// For whom that was decided: the user who called sudo, or one who owns nothing.
    pub uid: u32,
    /// Artifacts that root opened in the recorded launches, as they are now.
    pub used: u64,
    /// How many of them that user may not read.
    pub unreadable: u64,
    /// Of how many it cannot be decided.
    pub unknown: u64,
    /// What denies, the rule with the most artifacts first. Some of them, where there are many.
    pub rules: Vec<DenyingRule>,
    /// Some of the artifacts that are denied, by path.
    pub artifacts: Vec<HiddenArtifact>,
}

/// A rule that denies the other user some artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DenyingRule {
    /// The directory or file whose rule it is.
    pub path: String,
    /// The rule in words.
    pub rule: String,
    /// Artifacts that it denies.
    pub artifacts: u64,
}

/// One artifact that root reads and the other user may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenArtifact {
    /// Its path. Bytes that are no UTF-8 are shown as U+FFFD.
    pub path: String,
    /// Its family (`python_bytecode`).
    pub family: String,
    /// The directory or file that denies.
    pub denied_by: String,
    /// The smallest change that would allow, as commands of a shell; null where none can.
    pub change: Option<String>,
}
