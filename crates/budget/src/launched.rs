//! A check from its budget to its verdicts: counts and sizes are exact, times are judged by intervals, and what was exceeded is laid at the
//! door of files, processes and paths by one recorded launch more.
//!
//! Owns the order of work, and as whom files are read. Launching is that of `slowpath launch` with one arm (`verify`); the modules beside it
//! judge, and stay pure.

use crate::checked::{Launched, Looked, assembled, judged};
use crate::outcome::{Check, CheckedLimit};
use crate::responsible::{Seen, examine};
use crate::{Budget, Limit, Times, Verdict, parse};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::{Target, invoker};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, foreign_file, interrupt, open_recording, recorded_launch};
use slowpath_tables::missing::declared;
use slowpath_verify::ArmResult;
use slowpath_verify::benchmark::{LaunchArm, compared};
use slowpath_verify::conditions::Conditions;
use slowpath_verify::recorded_launch::record;
use std::path::Path;
use std::time::{Duration, Instant};

/// A budget larger than this is none.
const MOST_BYTES: u64 = 1 << 20;

/// Reads a budget as the user whose file it is.
///
/// # Errors
/// It cannot be read, or is none.
pub fn read(path: &Path) -> Result<Budget, Failure> {
    let unusable = |problem: &str| {
        Failure::new(Kind::Usage, format!("the budget {} cannot be used: {problem}", path.display()))
            .hint("docs/check.md shows a budget")
    };
    as_user(&invoker()?, &Work::reading("reading the budget"), || {
        let bytes = foreign_file::read(path, MOST_BYTES).map_err(|error| unusable(&error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is not in UTF-8"))?;
        parse(&text).map_err(|problem| unusable(&problem.to_string()))
    })
}

/// What a recording that exists says of the limits, read as the caller.
///
/// # Errors
/// It is none.
pub fn of_directory(directory: &Path, limits: &[Limit], progress: &dyn Progress) -> Result<Seen, Failure> {
    as_user(&invoker()?, &Work::reading("analysing the recording"), || examined(directory, limits, progress))
}

fn examined(directory: &Path, limits: &[Limit], progress: &dyn Progress) -> Result<Seen, Failure> {
    Ok(examine(&open_recording::open(directory, |text| progress.warn(text))?, limits))
}

/// What is checked.
pub struct CheckWanted<'a> {
    /// The limits, and how many launches.
    pub budget: &'a Budget,
    /// The command.
    pub arm: LaunchArm,
    /// When no further launch is made.
    pub max_time: Duration,
    /// Of the size of the environment.
    pub seed: u64,
    /// A recording that is used instead of one more launch: its name, and what it says.
    pub given: Option<(String, Seen)>,
}

/// Makes the launches, and judges every limit.
///
/// # Errors
/// The target could not be launched, the conditions could not be had, or the user ended it.
pub fn check(wanted: CheckWanted<'_>, conditions: &mut Conditions, progress: &dyn Progress) -> Result<Check, Failure> {
    let (result, times, ended) = launches(&wanted, conditions, progress)?;
    let CheckWanted { budget, arm: LaunchArm { target, .. }, given, .. } = wanted;
    let needed = |limit: &Limit| {
        limit.subject.needs_recording() || judged(limit, &result, &times, None).verdict == Verdict::Exceeded
    };
    let (recording, looked) = match given {
        Some((name, seen)) => (Some(name), Looked::Seen(seen)),
        None if !budget.limits.iter().any(needed) => (None, Looked::NotNeeded),
        None => (None, of_launch(&target, conditions, &budget.limits, progress)?),
    };
    progress.done();
    let limits: Vec<CheckedLimit> = budget
        .limits
        .iter()
        .map(|limit| CheckedLimit::new(limit, judged(limit, &result, &times, Some(&looked))))
        .collect();
    let launched = Launched {
        command: target.words(),
        ready: target.ready.to_string(),
        conditions: conditions.words(),
        recording,
        ended,
    };
    Ok(assembled(launched, &result, limits, looked))
}

/// Makes the launches, and says why no more were made.
fn launches(
    wanted: &CheckWanted<'_>,
    conditions: &mut Conditions,
    progress: &dyn Progress,
) -> Result<(ArmResult, Times, String), Failure> {
    let budget = wanted.budget;
    let mut times = Times::new(&budget.limits, budget.runs, budget.max_runs);
    let (most, began) = (times.most, Instant::now());
    let mut late = false;
    let arms = std::slice::from_ref(&wanted.arm);
    let made = compared(arms, conditions, most, wanted.seed, progress, |results, launches| {
        late = began.elapsed() >= wanted.max_time;
        let values = |metric| results.first().map(|result| result.values(metric)).unwrap_or_default();
        times.is_enough(values, launches, late)
    })?;
    if made.stopped {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    let ended = match made.blocks {
        blocks if blocks == most && !times.is_empty() => "no more are allowed".to_owned(),
        blocks if blocks == most => "the budget asks for no more".to_owned(),
        _ if late => "the time was over".to_owned(),
        _ => "every limit on times was decided".to_owned(),
    };
    Ok((made.results.into_iter().next().unwrap_or_default(), times, ended))
}

/// Records one more launch. What the machine cannot do is no error.
fn of_launch(
    target: &Target,
    conditions: &mut Conditions,
    limits: &[Limit],
    progress: &dyn Progress,
) -> Result<Looked, Failure> {
    let gaps = recorded_launch::gaps();
    if !gaps.is_empty() {
        return Ok(Looked::Impossible(gaps));
    }
    progress.step("recording one more launch: who is responsible?");
    let seen = record(target, conditions).and_then(|recorded| {
        let what = Work::reading("analysing the recording");
        as_user(&target.identity, &what, || examined(&recorded.directory(), limits, progress))
    });
    match seen {
        Ok(seen) => Ok(Looked::Seen(seen)),
        Err(failure) if failure.kind() == Kind::Machine && !interrupt::requested() => {
            let gap = declared::RECORDING.because(failure.chain(), "`slowpath doctor` lists everything");
            Ok(Looked::Impossible(vec![gap]))
        }
        Err(failure) => Err(failure),
    }
}
