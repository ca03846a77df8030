//! What `slowpath fix` prints: the JSON types, and the same as text.

use crate::printing::line;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_fix::FixPlan;
use slowpath_report::terminal::{Style, with_interval};
use slowpath_report::{Decision, Verdict};
use slowpath_tables::{Quantity, Unavailable};
use std::fmt::Write;

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

/// `slowpath fix list --json`.
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

/// `slowpath fix show --json`.
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
}

/// `slowpath fix apply --json`.
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

/// `slowpath fix undo --json`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FixUndone {
    /// `slowpath-fix-undo/1`.
    #[schemars(extend("const" = UNDO_SCHEMA))]
    pub schema: String,
    /// What was taken back, the last applied first.
    pub undone: Vec<UndoneFix>,
}

/// Lines of a screen. What is foreign in them is escaped here, for a screen passes colours.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.0, "{}", line(text.as_ref()));
    }
}

fn state_words(applied: &Applied) -> String {
    let paths = applied.paths.join(", ");
    match applied.state {
        AppliedState::Applied => format!("applied: {paths}"),
        AppliedState::Interrupted => format!("interrupted, `slowpath fix undo` restores: {paths}"),
        AppliedState::Changed => format!("applied, and changed by somebody since: {paths}"),
    }
}

impl FixList {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = Lines::default();
        if self.fixes.is_empty() {
            out.push("The diagnosis has no fix.");
        }
        let width = self.fixes.iter().map(|fix| fix.name.chars().count()).max().unwrap_or(0).min(40);
        for fix in &self.fixes {
            let measured = measured(fix.measured.as_ref());
            out.push(format!("{:width$}  {}{measured}  {}", fix.name, fix.decision.words(), fix.title));
            if fix.decision != Decision::Proved && !fix.reason.is_empty() {
                out.push(format!("{:width$}  why: {}", "", fix.reason));
            }
            fix.applied.iter().for_each(|applied| out.push(format!("{:width$}  {}", "", state_words(applied))));
        }
        for applied in &self.others {
            out.push(format!("{}, no fix of this diagnosis any more: {}", applied.name, state_words(applied)));
        }
        out.0
    }
}

/// ` (-3.2 ms (-4.0..-2.4))`, or nothing where it was not measured.
fn measured(change: Option<&Quantity>) -> String {
    change.map(|change| format!(" ({})", with_interval(change, &Style::PLAIN))).unwrap_or_default()
}

fn possibilities(out: &mut Lines, all: &[Possibility]) {
    if let [Possibility { unavailable: Some(first), .. }, ..] = all
        && all.iter().all(|one| one.unavailable.as_ref().is_some_and(|gap| gap.reason == first.reason))
    {
        out.push(format!("It cannot be applied: {}.", first.reason));
        out.push(format!("  remedy: {}", first.remedy));
        return;
    }
    out.push("It can be kept in:");
    for one in all {
        match &one.unavailable {
            None => out.push(format!("  {}: {}", one.option, one.title)),
            Some(gap) => out.push(format!("  not {}: {}; remedy: {}", one.option, gap.reason, gap.remedy)),
        }
    }
}

fn proposed(out: &mut Lines, change: &Proposed) {
    for file in &change.files {
        file.diff.lines().for_each(|text| out.push(text));
        if file.is_new {
            out.push(format!("(new file, mode {})", file.mode));
        }
    }
    change.remarks.iter().for_each(|remark| out.push(format!("Note: {remark}")));
}

impl FixShown {
    /// As text.
    pub fn text(&self) -> String {
        let (mut out, plan) = (Lines::default(), &self.fix);
        out.push(format!("{}: {}", plan.name, plan.title));
        let decision = self.verdict.as_ref().and_then(|verdict| verdict.decision).unwrap_or(Decision::NotTried);
        let measured = measured(self.verdict.as_ref().and_then(|verdict| verdict.measured.as_ref()));
        out.push(format!("verdict: {}{measured}", decision.words()));
        for change in &plan.changes {
            out.push(format!("changes: {}: {}", change.what, change.to));
        }
        plan.side_effects.iter().for_each(|effect| out.push(format!("side effect: {effect}")));
        out.push(format!("price: {}", plan.price));
        out.push(format!("security cost: {}", plan.security_cost));
        out.push("undo: `slowpath fix undo` restores every file that `slowpath fix apply` changed");
        match &self.change {
            None => possibilities(&mut out, &self.possibilities),
            Some(change) => {
                proposed(&mut out, change);
                out.push(format!(
                    "Nothing was changed. `slowpath fix apply` with the same options applies it; then: {}.",
                    change.then
                ));
            }
        }
        out.0
    }
}

impl FixApplied {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = Lines::default();
        match &self.change {
            Some(change) => {
                proposed(&mut out, change);
                out.push(format!("{} is applied. For it to take effect: {}.", self.name, change.then));
            }
            None => possibilities(&mut out, &self.possibilities),
        }
        out.0
    }
}

impl FixUndone {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = Lines::default();
        for fix in &self.undone {
            fix.restored.iter().for_each(|path| out.push(format!("{}: {path} is as it was", fix.name)));
            fix.kept
                .iter()
                .for_each(|path| out.push(format!("{}: {path} was changed by somebody and is left so", fix.name)));
        }
        out.0
    }
}
