//! What follows from a check: whether an artifact is to be repaired, and what is counted in the end. Pure.

use crate::Outcome;
use crate::check::Checked;
use crate::repair::End;
use crate::tries::Try;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of the repair of an artifact that is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairState {
    /// The command ran and exited with 0.
    Done,
    /// It exited with another status, or a signal ended it.
    Failed,
    /// It was killed after its timeout.
    TimedOut,
    /// It could not be started.
    NotStarted,
    /// It ran at an earlier start, at the same version.
    TriedBefore,
    /// It began at an earlier start, at the same version, whose end nobody noted: that start was killed.
    Interrupted,
    /// Another process repairs at this moment. It is not waited for.
    Running,
    /// It may not be run: `repair_reason` says why. Nothing was tried.
    Refused,
}

/// What was done about the artifact.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// No repair was asked for, there is no command, or nothing calls for it.
    None,
    /// It may not be run: why.
    Refused(String),
    /// Another process repairs.
    Running,
    /// It was tried at this version.
    Before(Try),
    /// It ran now, for so many ms, and this is what was found then.
    Now {
        /// How the command ended.
        end: End,
        /// How long it took.
        ms: f64,
        /// The artifact afterwards, in the order of the first check.
        after: Vec<Checked>,
    },
}

/// What is counted for one file and user.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The file and user, as they were found last.
    pub checked: Checked,
    /// What they were found to be first.
    pub found: Outcome,
    /// What is counted.
    pub outcome: Outcome,
    /// What became of the repair.
    pub repair: Option<RepairState>,
    /// Exit status of the command, of this start or of the earlier one.
    pub repair_status: Option<i32>,
    /// How long it took at this start.
    pub repair_ms: Option<f64>,
    /// Why it was not run.
    pub repair_reason: Option<String>,
}

/// Whether what was found of one artifact calls for a repair.
pub fn calls_for_repair(found: &[Checked]) -> bool {
    found.iter().any(|one| one.found.calls_for_repair())
}

/// What is counted of one artifact.
pub fn count(found: Vec<Checked>, attempt: &Attempt) -> Vec<Counted> {
    let Attempt::Now { end, ms, after } = attempt else {
        return found.into_iter().map(|one| count_unrepaired(one, attempt)).collect();
    };
    let (state, status) = match end {
        End::Exited(Some(0)) => (RepairState::Done, Some(0)),
        // Whether it did what it should, the check after it says.
        End::Exited(None) => (RepairState::Done, None),
        End::Exited(status) => (RepairState::Failed, *status),
        End::Killed(_) => (RepairState::Failed, None),
        End::TimedOut => (RepairState::TimedOut, None),
        End::NotStarted => (RepairState::NotStarted, None),
    };
    // The first that still denies: for a line of another user, which is counted with it.
    let worst = after.iter().find(|one| one.found.calls_for_repair());
    let is_undecided = after.iter().any(|one| one.found == Outcome::Unknown);
    let counted = found.into_iter().zip(after.iter().cloned()).map(|(before, mut now)| {
        let was_wrong = before.found.calls_for_repair();
        let outcome = match (was_wrong, worst) {
            (_, _) if now.found.calls_for_repair() => Outcome::RepairFailed,
            (true, Some(_)) => Outcome::RepairFailed,
            (true, None) if now.found == Outcome::Unknown || is_undecided => Outcome::Unknown,
            (true, None) => Outcome::Repaired,
            (false, _) => now.found,
        };
        if outcome == Outcome::RepairFailed
            && !now.found.calls_for_repair()
            && let Some(worst) = worst
        {
            let who = worst.uid.map_or_else(String::new, |uid| format!(" for uid {uid}"));
            (now.denied_by, now.change) = (worst.denied_by.clone(), worst.change.clone());
            now.reason = Some(format!("usable here, but {}{who}", worst.found.name()));
        } else if outcome == Outcome::Unknown && now.reason.is_none() {
            now.reason = Some("usable here, but unknown for another user of the artifact".to_owned());
        }
        let repair = was_wrong || now.found.calls_for_repair();
        Counted {
            checked: now,
            found: before.found,
            outcome,
            repair: repair.then_some(state),
            repair_status: status.filter(|_| repair),
            repair_ms: repair.then_some(*ms),
            repair_reason: None,
        }
    });
    counted.collect()
}

fn count_unrepaired(checked: Checked, attempt: &Attempt) -> Counted {
    let found = checked.found;
    let calls = found.calls_for_repair();
    let (repair, status, reason) = match attempt {
        _ if !calls => (None, None, None),
        Attempt::None | Attempt::Now { .. } => (None, None, None),
        Attempt::Refused(why) => (Some(RepairState::Refused), None, Some(why.clone())),
        Attempt::Running => (Some(RepairState::Running), None, None),
        Attempt::Before(tried) => match &tried.ended {
            Some(ended) => {
                let success = if ended.is_usable { "made it usable" } else { "did not make it usable" };
                let why = format!("tried at this version on {}, which {success}", ended.time);
                (Some(RepairState::TriedBefore), ended.status, Some(why))
            }
            None => {
                let why = format!("begun at this version on {}; that start ended early", tried.began);
                (Some(RepairState::Interrupted), None, Some(why))
            }
        },
    };
    let is_tried = matches!(repair, Some(RepairState::TriedBefore | RepairState::Interrupted));
    let outcome = if is_tried { Outcome::RepairFailed } else { found };
    Counted { checked, found, outcome, repair, repair_status: status, repair_ms: None, repair_reason: reason }
}

#[cfg(test)]
mod tests;
