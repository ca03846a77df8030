//! What `slowpath fix` shows: fixes that can be kept, what would change, what was changed and taken back.

use super::{Style, escape_terminal, with_interval};
use crate::Decision;
use slowpath_diagnose::kept::{Applied, AppliedState, FixApplied, FixList, FixShown, FixUndone, Possibility, Proposed};
use slowpath_tables::Quantity;
use std::fmt::Write;

/// Lines of a screen. What is foreign in them is escaped here, for a screen passes colours.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.0, "{}", escape_terminal(text.as_ref()));
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

/// The fixes of a diagnosis.
pub fn fix_list(list: &FixList) -> String {
    let mut out = Lines::default();
    if list.fixes.is_empty() {
        out.push("The diagnosis has no fix.");
    }
    let width = list.fixes.iter().map(|fix| fix.name.chars().count()).max().unwrap_or(0).min(40);
    for fix in &list.fixes {
        let measured = measured(fix.measured.as_ref());
        out.push(format!("{:width$}  {}{measured}  {}", fix.name, fix.decision.words(), fix.title));
        if fix.decision != Decision::Proved && !fix.reason.is_empty() {
            out.push(format!("{:width$}  why: {}", "", fix.reason));
        }
        fix.applied.iter().for_each(|applied| out.push(format!("{:width$}  {}", "", state_words(applied))));
    }
    for applied in &list.others {
        out.push(format!("{}, no fix of this diagnosis any more: {}", applied.name, state_words(applied)));
    }
    out.0
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

/// One fix, and what applying it would change.
pub fn fix_shown(shown: &FixShown) -> String {
    let (mut out, plan) = (Lines::default(), &shown.fix);
    out.push(format!("{}: {}", plan.name, plan.title));
    let decision = shown.verdict.as_ref().and_then(|verdict| verdict.decision).unwrap_or(Decision::NotTried);
    let measured = measured(shown.verdict.as_ref().and_then(|verdict| verdict.measured.as_ref()));
    out.push(format!("verdict: {}{measured}", decision.words()));
    for change in &plan.changes {
        out.push(format!("changes: {}: {}", change.what, change.to));
    }
    plan.side_effects.iter().for_each(|effect| out.push(format!("side effect: {effect}")));
    out.push(format!("trade-off: {}", plan.price));
    out.push(format!("security cost: {}", plan.security_cost));
    out.push("undo: `slowpath fix undo` restores every file that `slowpath fix apply` changed");
    match &shown.change {
        None => possibilities(&mut out, &shown.possibilities),
        Some(change) => {
            proposed(&mut out, change);
            if let Some(digest) = &shown.trust {
                out.push(
                    "Note: root did not make this diagnosis, or it was changed since; anybody may have written it.",
                );
                out.push(format!("If that is the change you want, apply it with --trust-diagnosis {digest}"));
            }
            out.push(format!(
                "Nothing was changed. `slowpath fix apply` with the same options applies it; then: {}.",
                change.then
            ));
        }
    }
    out.0
}

/// What was applied.
pub fn fix_applied(done: &FixApplied) -> String {
    let mut out = Lines::default();
    match &done.change {
        Some(change) => {
            proposed(&mut out, change);
            out.push(format!("{} is applied. For it to take effect: {}.", done.name, change.then));
        }
        None => possibilities(&mut out, &done.possibilities),
    }
    out.0
}

/// What was taken back.
pub fn fix_undone(done: &FixUndone) -> String {
    let mut out = Lines::default();
    for fix in &done.undone {
        fix.restored.iter().for_each(|path| out.push(format!("{}: {path} is as it was", fix.name)));
        fix.kept
            .iter()
            .for_each(|path| out.push(format!("{}: {path} was changed by somebody and is left so", fix.name)));
    }
    out.0
}
