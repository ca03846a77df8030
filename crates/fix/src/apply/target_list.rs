//! Every kind of file that keeps a fix, and why a fix can be kept in none of them, or not in one of this kind.
//!
//! Owns what follows from a plan alone, before any file is looked at. Leaves what one kind refuses, and its syntax, to that kind,
//! and a file that somebody changed meanwhile to [`super::journal`].

use super::refusal::Refusal;
use super::target_kind::{Keeps, TargetKind};
use super::{desktop_file, environment_file, permissions, systemd, wrapper};
use crate::plan::{FixPlan, Scope};
use crate::readahead_size;
use crate::treatment::Treatment;

/// Every kind.
pub static TARGETS: [&TargetKind; 5] =
    [&wrapper::TARGET, &environment_file::TARGET, &systemd::TARGET, &desktop_file::TARGET, &permissions::TARGET];

/// Why no file at all can keep a fix.
pub fn refused_everywhere(plan: &FixPlan) -> Option<Refusal> {
    match &plan.treatment {
        Treatment::Environment { .. } | Treatment::PreloadPlan { .. } | Treatment::Files { .. } => None,
        Treatment::Regeneration { .. } => Some(Refusal::new(
            "the command writes files that every later process trusts: slowpath runs it only in a trial, for its own launches",
            plan.changes.first().map_or_else(|| plan.trial.how.clone(), |change| format!("by hand: {}", change.to)),
        )),
        Treatment::PythonPreload { .. } => Some(Refusal::new(
            "the launches of a trial find the modules by a file in the directory of the diagnosis; a program names them itself",
            plan.changes
                .first()
                .map_or_else(|| plan.trial.how.clone(), |change| format!("in the source: {}", change.to)),
        )),
        Treatment::Source { place } => Some(Refusal::new(
            "it is a change of the program's source, which slowpath only shows",
            format!("change the source: {place}"),
        )),
        Treatment::Readahead { kib } => Some(Refusal::new(
            "it is a setting of a device, which affects every program on it",
            readahead_size::by_hand(*kib),
        )),
        Treatment::None if plan.scope == Scope::Source => {
            Some(Refusal::new("it is a change of the program's source", plan.trial.how.clone()))
        }
        Treatment::None if plan.scope == Scope::Machine => {
            Some(Refusal::new("it is a change of this machine, which slowpath only shows", plan.trial.how.clone()))
        }
        Treatment::None => Some(Refusal::new(
            "the diagnosis does not hold the treatment: nothing was tried, or an older slowpath wrote it",
            "diagnose again; `slowpath fix show` shows what the fix changes",
        )),
    }
}

/// Why this kind of file cannot keep this fix.
pub fn refusal(kind: &TargetKind, plan: &FixPlan) -> Option<Refusal> {
    refused_everywhere(plan).or_else(|| match (&kind.keeps, &plan.treatment) {
        (Keeps::Permissions, Treatment::Files { .. }) => None,
        (Keeps::Permissions, _) => Some(Refusal::new("it changes no permissions", "--wrapper PATH")),
        (Keeps::Content(_), Treatment::Files { .. }) => {
            Some(Refusal::new("it is a change of permissions, which a file cannot give", permissions::TARGET.option))
        }
        (Keeps::Content(kind), treatment) => (kind.refuses)(treatment),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{plan, rendered, replay};
    use super::super::target_kind::{ContentKind, FileNeed};
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_kinds_share_a_name_or_an_option() {
        for of in [|kind: &TargetKind| kind.name, |kind: &TargetKind| kind.option] {
            let names: HashSet<_> = TARGETS.iter().map(|kind| of(kind)).collect();
            assert_eq!(names.len(), TARGETS.len());
        }
    }

    #[test]
    fn names_that_a_shell_would_obey_and_nul_bytes_are_refused_everywhere() {
        for (name, value) in [("A B", "x"), ("A;reboot", "x"), ("", "x"), ("1A", "x"), ("A", "x\0y"), ("A\n", "x")] {
            for kind in &TARGETS {
                let needs = |kind: &ContentKind| kind.file == FileNeed::Existing;
                let is_changed = matches!(&kind.keeps, Keeps::Content(kind) if needs(kind));
                let before = Some("[Desktop Entry]\nExec=x\n").filter(|_| is_changed);
                let treatment = || Treatment::variable(name, value);
                let is_refused = refusal(kind, &plan(treatment())).is_some();
                assert!(
                    is_refused || rendered(kind, treatment(), &["true"], before).is_err(),
                    "{}: {name:?}={value:?}",
                    kind.name
                );
            }
        }
    }

    #[test]
    fn what_is_no_change_of_a_launch_is_shown_and_not_kept() {
        let source = plan(Treatment::Source { place: "copy (a.c:1)".to_owned() });
        assert!(refused_everywhere(&source).unwrap().remedy.contains("a.c:1"));
        assert!(refused_everywhere(&plan(Treatment::None)).unwrap().remedy.contains("diagnose again"));
        let device = plan(Treatment::Readahead { kib: 512 });
        assert!(refused_everywhere(&device).unwrap().remedy.contains("blockdev --setra 1024 "));
        assert_eq!(refused_everywhere(&plan(replay())), None);
    }

    #[test]
    fn permissions_are_kept_in_the_files_themselves_and_variables_are_not() {
        let files = plan(Treatment::Files { files: Vec::new() });
        let refused = |plan: &FixPlan| TARGETS.map(|kind| refusal(kind, plan).is_some());
        assert_eq!(refused(&files), [true, true, true, true, false]);
        assert_eq!(refused(&plan(Treatment::variable("A", "b"))), [false, false, false, false, true]);
    }
}
