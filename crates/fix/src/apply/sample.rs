//! A plan, and what a kind of file makes of it, made up for tests.
//!
//! Stands below the kinds: uses what all of them declare, and neither a kind nor the list of them.

use super::refusal::Refusal;
use super::target_kind::{Input, Keeps, Rendered, TargetKind};
use crate::plan::{FixPlan, Privilege, Scope, Trial};
use crate::preload_plan::program::ReplayProgram;
use crate::treatment::Treatment;
use crate::word::Word;
use std::path::Path;

/// The plan of a fix that is this treatment.
pub(super) fn plan(treatment: Treatment) -> FixPlan {
    FixPlan {
        fix: "allocator_tunables".to_owned(),
        name: "allocator_tunables".to_owned(),
        title: "glibc keeps memory\nrm -rf /".to_owned(),
        changes: Vec::new(),
        scope: Scope::Launch,
        privilege: Privilege::User,
        side_effects: Vec::new(),
        price: String::new(),
        security_cost: String::new(),
        undo: String::new(),
        trial: Trial { possible: true, how: String::new() },
        treatment,
    }
}

/// A plan file that is replayed.
pub(super) fn replay() -> Treatment {
    Treatment::PreloadPlan { file: "preload_plan.plan".to_owned(), sha256: None }
}

/// What a kind that writes files makes of a treatment, for this command.
pub(super) fn rendered(
    kind: &TargetKind,
    treatment: Treatment,
    command: &[&str],
    before: Option<&str>,
) -> Result<Rendered, Refusal> {
    let Keeps::Content(kind) = &kind.keeps else { panic!("{} writes no file", kind.name) };
    if let Some(refusal) = (kind.refuses)(&treatment) {
        return Err(refusal);
    }
    let command: Vec<Word> = command.iter().map(|word| Word::from(*word)).collect();
    (kind.render)(&Input {
        plan: &plan(treatment),
        command: &command,
        before: before.map(str::as_bytes),
        plan_file: Path::new("/home/u/my plans/x.plan"),
        replay: &ReplayProgram::slowpath(Path::new("/usr/bin/slowpath")),
    })
}

/// The inverse of writing `%%` for `%`, which systemd's specifiers and a desktop's field codes share; `None` where a
/// `%` stands alone and would be expanded.
pub(super) fn without_doubled_percent(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        if c == '%' && chars.next()? != '%' {
            return None;
        }
        out.push(c);
    }
    Some(out)
}
