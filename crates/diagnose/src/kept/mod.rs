//! Keeping the fixes of a diagnosis: what was proved becomes a change that a person can read before it is made, and take back.
//!
//! What would stand in files, and in which order they are written and restored, is decided and done in `slowpath_fix::apply`. Here the
//! diagnosis is read without trust ([`diagnosed`]), what would change is put together ([`proposed`]), and failures get their hints
//! ([`failures`]).

mod diagnosed;
mod failures;
mod printed;
mod proposed;

pub use diagnosed::remember;
pub use printed::{
    Applied, AppliedState, FixApplied, FixList, FixShown, FixUndone, ListedFix, Possibility, Proposed, ProposedFile,
    UndoneFix,
};
pub use proposed::TargetOptions;

use crate::printed::{Decision, Diagnosis, Verdict};
use diagnosed::Diagnosed;
use failures::failure;
use printed::{APPLY_SCHEMA, LIST_SCHEMA, SHOW_SCHEMA, UNDO_SCHEMA};
use proposed::Target;
use slowpath_fix::apply::error::ApplyError;
use slowpath_fix::apply::file_version::FileVersion;
use slowpath_fix::apply::finish::finish;
use slowpath_fix::apply::journal::State;
use slowpath_fix::apply::records::{Record, Records};
use slowpath_fix::apply::{TARGETS, place, refusal, steps};
use slowpath_fix::{FixPlan, Word, is_same_name};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::recorded_launch::now_rfc3339;
use std::path::Path;

/// Commands that show what would be changed to keep the fixes that are proved.
pub fn commands(directory: &Path, diagnosis: &Diagnosis) -> Vec<String> {
    let is_proved = |plan: &&FixPlan| {
        let proved = |verdict: &Verdict| verdict.arm == plan.name && verdict.decision == Some(Decision::Proved);
        diagnosis.verdicts.iter().any(proved) && slowpath_fix::apply::refused_everywhere(plan).is_none()
    };
    let proved = diagnosis.fixes.iter().filter(is_proved);
    let directory = directory.to_string_lossy();
    proved.filter_map(|plan| shlex::try_join(["slowpath", "fix", "show", &directory, &plan.name]).ok()).collect()
}

/// The fixes of the diagnosis in a directory, and which are applied.
///
/// # Errors
/// It is no diagnosis, or cannot be read.
pub fn list(directory: &Path) -> Result<FixList, Failure> {
    let diagnosed = Diagnosed::read(directory)?;
    let records = Records::to_read().and_then(|records| records.of(&diagnosed.directory)).map_err(failure)?;
    let applied: Vec<Applied> = records.iter().map(applied).collect::<Result<_, _>>()?;
    let of = |plan: &FixPlan| {
        let verdict = diagnosed.verdict(plan);
        ListedFix {
            name: plan.name.clone(),
            title: plan.title.clone(),
            decision: verdict.and_then(|verdict| verdict.decision).unwrap_or(Decision::NotTried),
            reason: verdict.map_or_else(|| plan.trial.how.clone(), |verdict| verdict.reason.clone()),
            measured: verdict.and_then(|verdict| verdict.measured),
            targets: possibilities(plan)
                .into_iter()
                .filter(|one| one.unavailable.is_none())
                .map(|one| one.target)
                .collect(),
            applied: applied.iter().filter(|one| is_same_name(&one.name, &plan.name)).cloned().collect(),
        }
    };
    let fixes: Vec<ListedFix> = diagnosed.fixes.iter().map(of).collect();
    let is_known = |one: &Applied| diagnosed.fixes.iter().any(|plan| is_same_name(&plan.name, &one.name));
    Ok(FixList {
        schema: LIST_SCHEMA.to_owned(),
        directory: diagnosed.directory.to_string_lossy().into_owned(),
        fixes,
        others: applied.iter().filter(|one| !is_known(one)).cloned().collect(),
    })
}

/// How an applied fix stands.
fn applied(record: &Record) -> Result<Applied, Failure> {
    let journal = &record.journal;
    let found = steps::found(journal).map_err(failure)?;
    let state = if found.contains(&FileVersion::Other) {
        AppliedState::Changed
    } else if journal.state == State::Applied && found.iter().all(|one| *one == FileVersion::After) {
        AppliedState::Applied
    } else if journal.state == State::Applied {
        AppliedState::Changed
    } else {
        AppliedState::Interrupted
    };
    let paths = journal.paths().map(path).collect();
    Ok(Applied { name: journal.fix.clone(), target: journal.target.clone(), paths, state })
}

fn path(path: &Word) -> String {
    place::path_of(path).to_string_lossy().into_owned()
}

/// Where a fix can be kept, and why not elsewhere.
fn possibilities(plan: &FixPlan) -> Vec<Possibility> {
    let of = |kind: &slowpath_fix::apply::TargetKind| Possibility {
        target: kind.name.to_owned(),
        option: kind.option.to_owned(),
        title: kind.title.to_owned(),
        unavailable: refusal(kind, plan).map(|refusal| refusal.gap(kind.option, &plan.name)),
    };
    TARGETS.into_iter().map(of).collect()
}

/// A fix, and what keeping it where the options say would change. Changes nothing.
///
/// # Errors
/// As [`list`]; there is no such fix, or it cannot be kept there.
pub fn show(directory: &Path, name: &str, options: &TargetOptions) -> Result<FixShown, Failure> {
    let diagnosed = Diagnosed::read(directory)?;
    let plan = diagnosed.fix(name)?;
    let target = Target::of(options, plan)?;
    let change = target.map(|target| proposed::change(&diagnosed, plan, target, options)).transpose()?;
    Ok(FixShown {
        schema: SHOW_SCHEMA.to_owned(),
        fix: plan.clone(),
        verdict: diagnosed.verdict(plan).cloned(),
        possibilities: possibilities(plan),
        trust: change.is_some().then(|| diagnosed.trust()).flatten(),
        change: change.map(|change| change.printed),
    })
}

/// Keeps a fix where the options say; where they say nothing, nothing is applied, and the result says what could be. `unproved` allows
/// one that the launches did not prove, `trusted` a diagnosis that root did not make: by the digest that [`show`] gives with the change.
///
/// # Errors
/// As [`show`]; it is not proved, others can write the diagnosis, or the files cannot be changed.
pub fn apply(
    directory: &Path,
    name: &str,
    options: &TargetOptions,
    unproved: bool,
    trusted: Option<&str>,
) -> Result<FixApplied, Failure> {
    let diagnosed = Diagnosed::read(directory)?;
    let plan = diagnosed.fix(name)?;
    let mut done = FixApplied {
        schema: APPLY_SCHEMA.to_owned(),
        name: plan.name.clone(),
        applied: false,
        change: None,
        possibilities: Vec::new(),
    };
    let Some(target) = Target::of(options, plan)? else {
        done.possibilities = possibilities(plan);
        return Ok(done);
    };
    require_proved(unproved, &diagnosed, plan)?;
    diagnosed.require_trusted(trusted)?;
    let records = Records::to_change().map_err(failure)?;
    let change = proposed::change(&diagnosed, plan, target, options)?;
    let mut record = records.begin(change.journal, &now_rfc3339()).map_err(failure)?;
    to_the_end(|| steps::apply(&records, &mut record))?;
    done.applied = true;
    done.change = Some(change.printed);
    Ok(done)
}

/// Carries out the steps of a change where a kill of this process does not stop them half-way.
fn to_the_end(steps: impl FnOnce() -> Result<(), ApplyError>) -> Result<(), Failure> {
    let work = || serde_json::to_vec(&steps().map_err(failure)).unwrap_or_default();
    let answer = finish(work).map_err(|error| {
        Failure::from_error(Kind::Machine, &error)
            .hint("`slowpath fix list` shows how far it is, `slowpath fix undo` restores all")
    })?;
    serde_json::from_slice(&answer).map_err(|error| Failure::from_error(Kind::Machine, &error))?
}

fn require_proved(unproved: bool, diagnosed: &Diagnosed, plan: &FixPlan) -> Result<(), Failure> {
    let verdict = diagnosed.verdict(plan);
    let decision = verdict.and_then(|verdict| verdict.decision).unwrap_or(Decision::NotTried);
    if decision == Decision::Proved || unproved {
        return Ok(());
    }
    let why = verdict.map(|verdict| verdict.reason.as_str()).filter(|why| !why.is_empty());
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    let words = decision.words();
    Err(Failure::new(Kind::Check, format!("the fix {} is not proved but {words}{why}: not applied", plan.name))
        .hint("--unproved applies it nevertheless; more blocks (`slowpath diagnose --blocks`) can decide it"))
}

/// Takes back what was applied of a diagnosis, or one fix of it. `keep_changed` leaves files as they are that somebody changed since.
///
/// # Errors
/// Nothing is applied, a file was changed since, or the files cannot be restored.
pub fn undo(directory: &Path, name: Option<&str>, keep_changed: bool) -> Result<FixUndone, Failure> {
    let directory = diagnosed::resolved(directory)?;
    let records = Records::to_change().map_err(failure)?;
    let mut found = records.of(&directory).map_err(failure)?;
    found.retain(|record| name.is_none_or(|name| is_same_name(&record.journal.fix, name)));
    if found.is_empty() {
        let of = name.map_or("no fix".to_owned(), |name| format!("the fix {name} is not applied; none"));
        return Err(Failure::new(Kind::Usage, format!("{of} of {} was applied by this user", directory.display()))
            .hint("`slowpath fix list` shows what is applied; what was applied with sudo is undone with sudo"));
    }
    let mut done = FixUndone { schema: UNDO_SCHEMA.to_owned(), undone: Vec::new() };
    for mut record in found {
        let changed = record.journal.changed(&steps::found(&record.journal).map_err(failure)?);
        let kept = if keep_changed { changed } else { Vec::new() };
        to_the_end(|| steps::undo(&records, &mut record, &kept))?;
        let (mut restored, mut left) = (Vec::new(), Vec::new());
        for (number, file) in record.journal.paths().enumerate() {
            if kept.contains(&number) { &mut left } else { &mut restored }.push(path(file));
        }
        let journal = record.journal;
        done.undone.push(UndoneFix { name: journal.fix, target: journal.target, restored, kept: left });
    }
    Ok(done)
}
