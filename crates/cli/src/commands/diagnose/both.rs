//! A diagnosis without a mode: looks at warm and at cold launches, tries first what costs more, and gives one answer.
//!
//! A half that this machine cannot have, or that the time does not suffice for, is a gap of the diagnosis and no failure.

use super::time_limit::TimeLimit;
use super::{Case, cold, warm};
use crate::arguments::ArmSet;
use crate::failure::{Failure, Kind};
use crate::recorded_launch;
use slowpath_analysis::findings::materiality::{LEAST_COST, LEAST_SHARE};
use slowpath_report::Diagnosis;
use slowpath_tables::Unavailable;
use std::time::Duration;

/// Time for everything where none is asked for.
pub const USUAL_LIMIT: Duration = Duration::from_secs(300);

/// Launches that looking at cold starts takes: the first look, those recorded at readahead 0, which are several times as slow, the
/// recorded cold one, and the pilots.
const LAUNCHES_OF_A_LOOK: u32 = 24;

/// Runs it.
pub fn run(case: &Case<'_>, set: ArmSet, limit: &TimeLimit) -> Result<Diagnosis, Failure> {
    let mut gaps = Vec::new();
    let warm = or_gap("warm launches", "--warm", &mut gaps, look_at_warm(case))?;
    let cold = match too_slow(warm.as_ref(), limit) {
        Some(gap) => {
            gaps.push(gap);
            None
        }
        None => or_gap("cold launches", "--cold", &mut gaps, look_at_cold(case, set))?,
    };
    let mut diagnosis = match (cold, warm) {
        (Some(cold), Some(warm)) => both(case, set, limit, cold, &warm.beside_cold())?,
        (Some(mut cold), None) => cold.tried(case, set, limit)?,
        (None, Some(warm)) => warm.tried(case, limit)?,
        (None, None) => return Err(Failure::unavailable("diagnose", &gaps)),
    };
    diagnosis.unavailable.extend(gaps);
    if diagnosis.findings.is_empty() {
        diagnosis.notes.push(nothing_found());
    }
    Ok(diagnosis)
}

fn look_at_warm(case: &Case<'_>) -> Result<warm::Looked, Failure> {
    recorded_launch::require_profile("diagnose")?;
    warm::look(case)
}

fn look_at_cold(case: &Case<'_>, set: ArmSet) -> Result<cold::Looked, Failure> {
    recorded_launch::require("diagnose", true)?;
    cold::look(case, set)
}

/// What costs more is tried first, and the other in the time that is left.
fn both(
    case: &Case<'_>,
    set: ArmSet,
    limit: &TimeLimit,
    mut cold: cold::Looked,
    warm: &warm::Looked,
) -> Result<Diagnosis, Failure> {
    let untried = cold.untried(case, "no finding asks for it")?;
    let worst = untried.findings.iter().map(|finding| finding.cost.value).fold(0.0, f64::max);
    let warm_first = if warm.worst() > worst { Some(warm.tried(case, limit)?) } else { None };
    let cold = if cold::answers(&untried) { cold.tried(case, set, limit)? } else { untried };
    let warm = match warm_first {
        Some(tried) => tried,
        None => warm.tried(case, limit)?,
    };
    Ok(Diagnosis::of_both(cold, warm))
}

/// What the machine cannot do becomes a gap; a target that fails, and an interrupt, end the diagnosis.
fn or_gap<T>(
    what: &str,
    option: &str,
    gaps: &mut Vec<Unavailable>,
    looked: Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    match looked {
        Ok(looked) => Ok(Some(looked)),
        Err(failure) if failure.kind() == Kind::Machine => {
            gaps.push(Unavailable {
                what: what.to_owned(),
                reason: failure.chain(),
                remedy: format!("`slowpath doctor` lists what is missing; `slowpath diagnose {option}` says more"),
            });
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Whether cold launches of a program that takes so long when warm leave no time for anything else.
fn too_slow(warm: Option<&warm::Looked>, limit: &TimeLimit) -> Option<Unavailable> {
    let (warm, left) = (warm?, limit.left()?);
    let needed = warm.pace * LAUNCHES_OF_A_LOOK;
    (needed > left).then(|| Unavailable {
        what: "cold launches".to_owned(),
        reason: format!(
            "to look at them takes {LAUNCHES_OF_A_LOOK} launches of {:.0} s, longer than the {:.0} s that are left (--max-time)",
            warm.pace.as_secs_f64(),
            left.as_secs_f64()
        ),
        remedy: "a larger --max-time, or `slowpath diagnose --cold`".to_owned(),
    })
}

/// What was looked at, and what would have been seen.
fn nothing_found() -> String {
    format!(
        "looked at: reads from storage before ready, page faults, memory that is mapped and given back, copied or kept unused, huge \
         pages. A cost of {:.0} ms that is {:.1} % of the CPU time of its processes, or more, would have been found",
        LEAST_COST.as_ms(),
        LEAST_SHARE * 100.0
    )
}
