//! What was run on a device, and how each step ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the manifest, which `android collect --json` prints too.
pub const EVIDENCE_SCHEMA: &str = "slowpath-android-evidence/1";

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// As it should.
    Done,
    /// The device gave some of it and refused the rest: what needs root.
    PartlyRefused,
    /// The device refused it.
    Refused,
    /// The command is not there, or failed for another reason.
    Failed,
    /// It took longer than it may.
    TimedOut,
    /// The answer ended before its end.
    CutShort,
    /// The device went away.
    Disconnected,
    /// The user asked to stop.
    Interrupted,
}

/// One command, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it is for, in a few words.
    pub what: String,
    /// The words behind `adb -s SERIAL`.
    pub command: Vec<String>,
    /// The file of the evidence that has its output; `null` where there is none.
    pub file: Option<String>,
    /// Bytes of output that were kept.
    pub bytes: u64,
    /// How it ended.
    pub outcome: StepOutcome,
    /// Exit status on the device; `null` where it did not come.
    pub status: Option<i32>,
    /// What the device or adb said of it.
    pub said: Option<String>,
    /// What would change that.
    pub remedy: Option<String>,
}

/// `evidence.json`, which `slowpath android collect` writes: what was run, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceManifest {
    /// `slowpath-android-evidence/1`.
    #[schemars(extend("const" = EVIDENCE_SCHEMA))]
    pub schema: String,
    /// When collecting began, RFC 3339, UTC.
    pub collected: String,
    /// The device, as adb names it.
    pub serial: String,
    /// The first line of `adb version`.
    pub adb: String,
    /// The packages that were asked for.
    pub packages: Vec<String>,
    /// Whether collecting came to its end.
    pub is_complete: bool,
    /// Whether adb's shell was root on the device; `null` where that is not known.
    pub is_root: Option<bool>,
    /// Commands in their order.
    pub steps: Vec<Step>,
}

impl EvidenceManifest {
    /// Before the first step.
    pub fn new(collected: String, serial: String, adb: String, packages: Vec<String>) -> Self {
        let schema = EVIDENCE_SCHEMA.to_owned();
        Self { schema, collected, serial, adb, packages, is_complete: false, is_root: None, steps: Vec::new() }
    }
}
