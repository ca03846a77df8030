//! What a start writes: one JSON line for each file and user, with the columns that `slowpath fleet` reads.

use crate::Outcome;
use crate::decide::{Counted, RepairState};
use crate::policy::{Policy, PolicyUser};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_artifacts::access::quoted;
use slowpath_artifacts::audit::DeniedBy;
use slowpath_artifacts::families;

/// Name and version of a line.
pub const LINE_SCHEMA: &str = "slowpath-guard/1";

/// The metric of `slowpath fleet` that a line is a row of.
pub const METRIC: &str = "check_ms";

/// A line that a guard prints with `--json`: one file of an artifact, for one user, at one start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// `slowpath-guard/1`.
    #[schemars(extend("const" = LINE_SCHEMA))]
    pub schema: String,
    /// When, RFC 3339, UTC.
    pub time: String,
    /// A random number of this start, in hexadecimal: the lines of one start have the same. Nothing else says on which machine it was.
    pub start_id: String,
    /// The product's own pseudonym of its user, as the caller gave it; left out where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name of the policy.
    pub policy: String,
    /// Version of the policy.
    pub version: String,
    /// Name of the artifact.
    pub artifact: String,
    /// The file.
    pub path: String,
    /// Its family, where one knows its name.
    pub family: Option<String>,
    /// The user who needs it; `null` where there is no such user, and where the policy names none.
    pub uid: Option<u32>,
    /// The same as the policy names them.
    pub needed_by: Option<String>,
    /// What is counted.
    pub outcome: Outcome,
    /// What it was before anything was repaired: never `repaired` or `repair_failed`.
    pub found: Outcome,
    /// The first rule that denies.
    pub denied_by: Option<DeniedBy>,
    /// The smallest change of permissions that would allow, as commands of a shell.
    pub change: Option<String>,
    /// Why it is what it is.
    pub reason: Option<String>,
    /// What became of the repair; `null` where none was asked for or needed.
    pub repair: Option<RepairState>,
    /// Exit status of the command.
    pub repair_status: Option<i32>,
    /// How long the command took, where it ran at this start.
    pub repair_ms: Option<f64>,
    /// Why it was not run at this start.
    pub repair_reason: Option<String>,
    /// How long this file was looked at for this user, in ms; the first user of a file has the look-up.
    pub check_ms: f64,
    /// `check_ms`, the name under which `slowpath fleet` takes `value`.
    #[schemars(extend("const" = METRIC))]
    pub metric: String,
    /// How long all of this start's looking took, in ms: policy, users, files; without repairs.
    pub value: f64,
    /// `ms`.
    #[schemars(extend("const" = "ms"))]
    pub unit: String,
}

/// What all lines of a start have.
pub struct Start {
    /// When.
    pub time: String,
    /// Random.
    pub id: String,
    /// The product's user.
    pub user: Option<String>,
    /// How long all looking took.
    pub check_ms: f64,
}

impl Line {
    /// The line of what was counted.
    pub(crate) fn new(policy: &Policy, start: &Start, counted: Counted) -> Self {
        let Counted { checked, found, outcome, repair, repair_status, repair_ms, repair_reason } = counted;
        let artifact = &policy.artifacts[checked.artifact];
        let path = &artifact.paths[checked.path];
        Self {
            schema: LINE_SCHEMA.to_owned(),
            time: start.time.clone(),
            start_id: start.id.clone(),
            user: start.user.clone(),
            policy: policy.name.clone(),
            version: policy.version.clone(),
            artifact: artifact.name.clone(),
            path: path.to_string_lossy().into_owned(),
            family: families::of_file(path).map(|family| family.name.to_owned()),
            uid: checked.uid,
            needed_by: checked.user.map(|user| words(&artifact.users[user])),
            outcome,
            found,
            denied_by: checked.denied_by,
            change: checked.change,
            reason: checked.reason,
            repair,
            repair_status,
            repair_ms: repair_ms.map(rounded),
            repair_reason,
            check_ms: rounded(checked.ms),
            metric: METRIC.to_owned(),
            value: rounded(start.check_ms),
            unit: "ms".to_owned(),
        }
    }

    /// It as one line of JSON, in which no character controls a terminal.
    pub fn json(&self) -> String {
        // A line holds texts and finite numbers, which are always JSON.
        slowpath_tables::escape_json(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Its file as one word of a shell.
    pub fn quoted_path(&self) -> String {
        quoted(self.path.as_ref())
    }
}

/// To the microsecond, which is what a clock in a product's start is good for.
fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

fn words(user: &PolicyUser) -> String {
    match user {
        PolicyUser::Known(name) => name.clone(),
        PolicyUser::Ids { uid, .. } => uid.to_string(),
    }
}
