//! A diagnosis without a mode: looks at warm and at cold launches, tries first what costs more, and gives one answer.
//!
//! A half that this machine cannot have, or that the time does not suffice for, is a gap of the diagnosis and no failure.
//!
//! The trials of both halves share one error rate. How is decided by what asks for a trial, and by whether the first half had one, never by
//! what its launches showed ([`level_of_each`], [`level_of_second`]).

use crate::case::Case;
use crate::printed::Diagnosis;
use crate::time_limit::TimeLimit;
use crate::{cold, warm};
use slowpath_experiment::Level;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::{interrupt, recorded_launch};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::{Missing, declared};
use slowpath_verify::lab_session;

/// Launches that looking at cold starts takes: the first look, those recorded at readahead 0, which are several times as slow, the
/// recorded cold one, and the pilots.
const LAUNCHES_OF_A_LOOK: u32 = 24;

/// Runs it.
pub fn run(case: &Case<'_>, limit: &TimeLimit) -> Result<Diagnosis, Failure> {
    let mut gaps = Vec::new();
    let warm = or_gap(&declared::WARM_LAUNCHES, "--warm", &[Kind::Machine], look_at_warm(case), &mut gaps)?;
    // A program that gets ready outside a lab and not in one has no cold half.
    let gap_kinds: &[Kind] = if warm.is_some() { &[Kind::Machine, Kind::Target] } else { &[Kind::Machine] };
    let cold = match too_slow(warm.as_ref(), limit) {
        Some(gap) => {
            gaps.push(gap);
            None
        }
        None => or_gap(&declared::COLD_LAUNCHES, "--cold", gap_kinds, look_at_cold(case), &mut gaps)?,
    };
    let mut diagnosis = match (cold, warm) {
        (Some(cold), Some(warm)) => both(case, limit, cold, &warm.beside_cold())?,
        (Some(mut cold), None) => cold.tried_if_asked_for(case, limit, Level::P95)?,
        (None, Some(warm)) => warm.tried(case, limit, Level::P95)?,
        (None, None) => return Err(Failure::unavailable("diagnose", &gaps)),
    };
    diagnosis.unavailable.extend(gaps);
    Ok(diagnosis)
}

fn look_at_warm(case: &Case<'_>) -> Result<warm::Looked, Failure> {
    recorded_launch::require_profile("diagnose")?;
    warm::look(case)
}

fn look_at_cold(case: &Case<'_>) -> Result<cold::Looked, Failure> {
    lab_session::require("diagnose", true)?;
    cold::look(case)
}

/// What costs more is tried first, and the other in the time that is left.
fn both(case: &Case<'_>, limit: &TimeLimit, mut cold: cold::Looked, warm: &warm::Looked) -> Result<Diagnosis, Failure> {
    let level = level_of_each([cold.asks_for_a_trial(), warm.asks_for_a_trial()]);
    let (cold, warm) = if warm.worst() > cold.worst() {
        let warm = warm.tried(case, limit, level)?;
        (cold.tried_if_asked_for(case, limit, level_of_second(level, &warm))?, warm)
    } else {
        let cold = cold.tried_if_asked_for(case, limit, level)?;
        let level = level_of_second(level, &cold);
        (cold, warm.tried(case, limit, level)?)
    };
    Ok(Diagnosis::of_both(cold, warm))
}

/// The level with which all intervals of one half hold: where both ask for a trial, each may spend half of the error.
fn level_of_each(ask_for_a_trial: [bool; 2]) -> Level {
    Level::P95.shared_by(ask_for_a_trial.into_iter().filter(|asks| *asks).count())
}

/// The same of the half that is tried second: all of the error is left where the first had no trial after all (the time did not suffice, or
/// nothing could be launched). A first half without a trial concludes nothing, so it spends nothing.
fn level_of_second(level: Level, first: &Diagnosis) -> Level {
    if first.launch.error_rate.is_some() { level } else { Level::P95 }
}

/// A failure of one of `gap_kinds` becomes a gap; others, and an interrupt, end the diagnosis.
fn or_gap<T>(
    half: &Missing,
    option: &str,
    gap_kinds: &[Kind],
    looked: Result<T, Failure>,
    gaps: &mut Vec<Unavailable>,
) -> Result<Option<T>, Failure> {
    match looked {
        Ok(looked) => Ok(Some(looked)),
        // What ctrl-C interrupts may fail in any way.
        Err(failure) if gap_kinds.contains(&failure.kind()) && !interrupt::requested() => {
            gaps.push(half.because(
                failure.chain(),
                format!("`slowpath doctor` lists what is missing; `slowpath diagnose {option}` says more"),
            ));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Whether cold launches of a program that takes so long when warm leave no time for anything else.
fn too_slow(warm: Option<&warm::Looked>, limit: &TimeLimit) -> Option<Unavailable> {
    let (warm, left) = (warm?, limit.left()?);
    let needed = warm.pace * LAUNCHES_OF_A_LOOK;
    (needed > left).then(|| {
        declared::COLD_LAUNCHES.because(
            format!(
                "to look at them takes {LAUNCHES_OF_A_LOOK} launches of {:.0} s, longer than the {:.0} s that are left (--max-time)",
                warm.pace.as_secs_f64(),
                left.as_secs_f64()
            ),
            "a larger --max-time, or `slowpath diagnose --cold`, which has all of it",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps_of(failure: Failure, gap_kinds: &[Kind]) -> Option<String> {
        let mut gaps = Vec::new();
        or_gap::<()>(&declared::COLD_LAUNCHES, "--cold", gap_kinds, Err(failure), &mut gaps).ok()?;
        gaps.pop().map(|gap| gap.reason)
    }

    #[test]
    fn two_halves_that_ask_for_a_trial_share_one_error_rate_and_one_alone_has_all_of_it() {
        let half = Level::P95.shared_by(2);
        assert_eq!(level_of_each([true, true]), half);
        assert!([[true, false], [false, true], [false, false]].map(level_of_each).iter().all(|one| *one == Level::P95));
    }

    #[test]
    fn what_fails_only_in_the_lab_is_a_gap_and_what_fails_everywhere_a_failure() {
        let failed = || Failure::new(Kind::Target, "it exited with 1");
        assert_eq!(gaps_of(failed(), &[Kind::Machine, Kind::Target]).as_deref(), Some("it exited with 1"));
        assert_eq!(gaps_of(failed(), &[Kind::Machine]), None);
        assert_eq!(gaps_of(Failure::new(Kind::Interrupted, "interrupted"), &[Kind::Machine]), None);
    }
}
