//! What `slowpath fix` prints as JSON.

use crate::printed::{Decision, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_fix::FixPlan;
use slowpath_tables::{Quantity, Unavailable};

/// Name and version of the lists.
pub const LIST_SCHEMA: &str = "slowpath-fix-list/1";
/// Name and version of one fix.
pub const SHOW_SCHEMA: &str = "slowpath-fix-show/1";
/// Name and version of what was applied.
pub const APPLY_SCHEMA: &str = "slowpath-fix-apply/1";
/// Name and version of what was taken back.
pub const UNDO_SCHEMA: &str = "slowpath-fix-undo/1";

/// How an applied fix stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppliedState {
    /// Every file is as it was written.
    Applied,
    /// Whoever applied or undid it was killed; `slowpath fix undo` restores everything.
    Interrupted,
    /// Somebody changed a file since.
    Changed,
}

/// Files that were changed for a fix.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Applied {
    /// Name of the fix.
    pub name: String,
    /// Kind of target: `wrapper`, `environment_file`, `systemd_unit`, `desktop_file`, `permissions`.
    pub target: String,
    /// The files.
    pub paths: Vec<String>,
    /// How it stands.
    pub state: AppliedState,
}

/// A fix in the list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedFix {
    /// Its name.
    pub name: String,
    /// One line for the reader.
    pub title: String,
    /// What the launches showed; `not_tried` where there is no verdict.
    pub decision: Decision,
    /// Why, where figures alone do not say it.
    pub reason: String,
    /// Change against the untreated launch, negative is less.
    pub measured: Option<Quantity>,
    /// Kinds of files that can keep it.
    pub targets: Vec<String>,
    /// Where it is applied, by the user who asks.
    pub applied: Vec<Applied>,
}

/// What `slowpath fix list --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FixList {
    /// `slowpath-fix-list/1`.
    #[schemars(extend("const" = LIST_SCHEMA))]
    pub schema: String,
    /// The directory of the diagnosis.
    pub directory: String,
    /// The fixes.
    pub fixes: Vec<ListedFix>,
    /// Applied fixes that the diagnosis does not have any more.
    pub others: Vec<Applied>,
}

/// A kind of file that can keep a fix, or why it cannot.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Possibility {
    /// Kind of target.
    pub target: String,
    /// The option that names one.
    pub option: String,
    /// What is made there.
    pub title: String,
    /// Why it cannot be had; null where it can.
    pub unavailable: Option<Unavailable>,
}

/// A file that would change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProposedFile {
    /// Its path.
    pub path: String,
    /// Whether there is none yet.
    pub is_new: bool,
    /// Its mode with the fix, octal.
    pub mode: String,
    /// The change as a unified diff.
    pub diff: String,
}

/// What applying a fix changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Proposed {
    /// Kind of target.
    pub target: String,
    /// The files, in the order in which they are written.
    pub files: Vec<ProposedFile>,
    /// What a reader should know of them.
    pub remarks: Vec<String>,
    /// What is still to be done for the fix to take effect.
    pub then: String,
}

/// What `slowpath fix show --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FixShown {
    /// `slowpath-fix-show/1`.
    #[schemars(extend("const" = SHOW_SCHEMA))]
    pub schema: String,
    /// The fix, with price, security cost and undo.
    pub fix: FixPlan,
    /// What the launches showed.
    pub verdict: Option<Verdict>,
    /// Where it can be kept.
    pub possibilities: Vec<Possibility>,
    /// What applying it would change; null without a target.
    pub change: Option<Proposed>,
    /// SHA-256 of the diagnosis, which `fix apply` takes with `--trust-diagnosis`: as root with a target, where root did not make the
    /// diagnosis, or where it was changed since.
    pub trust: Option<String>,
}

/// What `slowpath fix apply --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FixApplied {
    /// `slowpath-fix-apply/1`.
    #[schemars(extend("const" = APPLY_SCHEMA))]
    pub schema: String,
    /// Name of the fix.
    pub name: String,
    /// Whether it was applied: not without a target.
    pub applied: bool,
    /// What was changed.
    pub change: Option<Proposed>,
    /// Where it can be kept, where no target was named.
    pub possibilities: Vec<Possibility>,
}

/// A fix that was taken back.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UndoneFix {
    /// Name of the fix.
    pub name: String,
    /// Kind of target.
    pub target: String,
    /// Files that are as before.
    pub restored: Vec<String>,
    /// Files that somebody changed and that were left as they are.
    pub kept: Vec<String>,
}

/// What `slowpath fix undo --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FixUndone {
    /// `slowpath-fix-undo/1`.
    #[schemars(extend("const" = UNDO_SCHEMA))]
    pub schema: String,
    /// What was taken back, the last applied first.
    pub undone: Vec<UndoneFix>,
}
