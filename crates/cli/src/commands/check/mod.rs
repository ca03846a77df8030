//! `slowpath check`: a budget for the launches of a command, for a pipeline. Counts and sizes are exact, times are judged by
//! intervals, and what was exceeded is laid at the door of files, processes and paths by one recorded launch more.
//!
//! Owns the order of work and the exit code. Launching is that of `slowpath launch` with one arm.

mod recording;
mod screen;

use crate::arguments::{CheckArguments, settings};
use crate::commands::launch::arms::{self, LaunchArm};
use crate::commands::print_json;
use crate::failure::{Failure, Kind};
use crate::foreign_file;
use crate::interrupt;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use recording::Looked;
use slowpath_budget::outcome::{self, CheckedLimit};
use slowpath_budget::verdict::{self, Judged, Times, Verdict};
use slowpath_budget::{self as budget, Budget, Check, Limit, Subject};
use slowpath_verify::benchmark::compared;
use slowpath_verify::conditions::Conditions;
use slowpath_verify::{ArmResult, Measures, Metric};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// A budget larger than this is none.
const MOST_BYTES: u64 = 1 << 20;

/// Runs the command.
pub fn run(arguments: &CheckArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    let budget = read(&arguments.budget)?;
    let given = arguments.recording.as_deref();
    let given = given.map(|directory| recording::of_directory(directory, &budget.limits)).transpose()?;
    let invocation = arguments.invocation(budget.ready.as_ref());
    let arms = [arms::one(&invocation, arguments.target.clone())?];
    let target = &arms[0].target;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    let progress = Progress::new(arguments.quiet);
    let targets = std::iter::once(target);
    let mut conditions = Conditions::prepare(settings(&arguments.device), budget.cold, targets, &progress)?;
    let (result, times, ended) = launches(arguments, &budget, &arms, &mut conditions, &progress)?;
    let needed = |limit: &Limit| {
        limit.subject.needs_recording() || judged(limit, &result, &times, None).verdict == Verdict::Exceeded
    };
    let looked = match given {
        Some(seen) => Looked::Seen(seen),
        None if !budget.limits.iter().any(needed) => Looked::NotNeeded,
        None => recording::of_launch(target, &mut conditions, &budget.limits, &progress)?,
    };
    progress.done();
    let limits: Vec<CheckedLimit> = budget
        .limits
        .iter()
        .map(|limit| CheckedLimit::new(limit, judged(limit, &result, &times, Some(&looked))))
        .collect();
    let check = assemble(arguments, &arms[0], &conditions, &result, limits, looked, ended);
    if arguments.json {
        print_json(&check);
    } else {
        print!("{}", screen::summary(&check));
    }
    Ok(finish(&check, arguments.strict))
}

/// Reads the budget as the user whose file it is.
fn read(path: &Path) -> Result<Budget, Failure> {
    let unusable = |problem: &str| {
        Failure::new(Kind::Usage, format!("the budget {} cannot be used: {problem}", path.display()))
            .hint("docs/check.md shows a budget")
    };
    as_user(&super::invoker()?, &Work::reading("reading the budget"), || {
        let bytes = foreign_file::read(path, MOST_BYTES).map_err(|error| unusable(&error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is not in UTF-8"))?;
        budget::parse(&text).map_err(|problem| unusable(&problem.to_string()))
    })
}

/// Makes the launches, and says why no more were made.
fn launches(
    arguments: &CheckArguments,
    budget: &Budget,
    arms: &[LaunchArm],
    conditions: &mut Conditions,
    progress: &Progress,
) -> Result<(ArmResult, Times, String), Failure> {
    let mut times = Times::new(&budget.limits, budget.runs, budget.max_runs);
    let (most, began) = (times.most, Instant::now());
    let mut late = false;
    let made = compared(arms, conditions, most, arguments.seed, progress, |results, launches| {
        late = began.elapsed() >= arguments.max_time;
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

/// Judges a limit; without `looked` what needs a recording is not known.
fn judged(limit: &Limit, result: &ArmResult, times: &Times, looked: Option<&Looked>) -> Judged {
    let seen = match looked {
        Some(Looked::Seen(seen)) => Some(seen),
        _ => None,
    };
    match (limit.subject, seen) {
        (Subject::Time { .. }, _) => {
            times.judged(&limit.name).cloned().unwrap_or_else(|| Judged::unavailable("no launch was looked at"))
        }
        (Subject::Largest(metric), _) => verdict::exact(limit.budget, &result.values(metric)),
        (Subject::Processes, Some(seen)) => {
            verdict::recorded(limit.budget, seen.processes as f64, seen.processes_doubt.as_deref())
        }
        (Subject::DeniedOpens, Some(seen)) => match &seen.opens_missing {
            Some(why) => Judged::unavailable(why.clone()),
            None => verdict::recorded(limit.budget, seen.denied_opens as f64, seen.opens_doubt.as_deref()),
        },
        (Subject::ColdBytes, Some(seen)) => {
            verdict::recorded(limit.budget, seen.cold_bytes as f64, seen.insertions_doubt.as_deref())
        }
        (Subject::Processes | Subject::DeniedOpens | Subject::ColdBytes, None) => {
            Judged::unavailable("it takes a recording")
        }
    }
}

fn assemble(
    arguments: &CheckArguments,
    arm: &LaunchArm,
    conditions: &Conditions,
    result: &ArmResult,
    limits: Vec<CheckedLimit>,
    looked: Looked,
    ended: String,
) -> Check {
    let exceeded = |name: &str| limits.iter().any(|limit| limit.name == name && limit.verdict == Verdict::Exceeded);
    let (responsible, unavailable, recording) = match looked {
        Looked::Seen(seen) => {
            let responsible = seen.responsible.into_iter().filter(|one| exceeded(&one.limit)).collect();
            let given = arguments.recording.as_ref().map(|directory| directory.to_string_lossy().into_owned());
            (responsible, Vec::new(), Some(given.unwrap_or_else(|| "one more launch".to_owned())))
        }
        Looked::Impossible(gaps) => (Vec::new(), gaps, None),
        Looked::NotNeeded => (Vec::new(), Vec::new(), None),
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in result.discarded.iter().chain(&result.failed) {
        *reasons.entry(reason).or_default() += 1;
    }
    let launches: Vec<Measures> = result.launches.iter().flatten().map(|launch| launch.measures.clone()).collect();
    Check {
        schema: outcome::SCHEMA,
        command: arm.target.words(),
        ready: arm.target.ready.to_string(),
        conditions: conditions.words(),
        verdict: Verdict::overall(limits.iter().map(|limit| limit.verdict)),
        limits,
        responsible,
        recording,
        unavailable,
        ended,
        launches,
        units: Metric::ALL.map(|metric| (metric, metric.unit())).into(),
        discarded: u32::try_from(result.discarded.len()).unwrap_or(u32::MAX),
        failed: u32::try_from(result.failed.len()).unwrap_or(u32::MAX),
        reasons: reasons.into_iter().map(|(reason, count)| format!("{count} x {reason}")).collect(),
    }
}

/// The exit code, and on standard error why it is not 0.
fn finish(check: &Check, strict: bool) -> ExitCode {
    let named = |verdict: Verdict| {
        let names = check.limits.iter().filter(|limit| limit.verdict == verdict).map(|limit| limit.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let (kind, words) = match check.verdict {
        _ if check.failed > 0 => {
            (Some(Kind::Target), format!("{} failed: counted and not timed", outcome::launches(check.failed as usize)))
        }
        Verdict::Exceeded => (Some(Kind::Check), format!("over budget: {}", named(Verdict::Exceeded))),
        Verdict::Unavailable => {
            (Some(Kind::Machine), format!("not measured on this machine: {}", named(Verdict::Unavailable)))
        }
        Verdict::Undecided if strict => {
            (Some(Kind::Check), format!("undecided, and --strict: {}", named(Verdict::Undecided)))
        }
        Verdict::Undecided => (None, format!("undecided: {}", named(Verdict::Undecided))),
        Verdict::Within => return ExitCode::SUCCESS,
    };
    eprintln!("slowpath: {words}");
    kind.map_or(ExitCode::SUCCESS, |kind| ExitCode::from(kind as u8))
}
