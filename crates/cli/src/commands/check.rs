//! `slowpath check`: a budget for the launches of a command, for a pipeline. Counts and sizes are exact, times are judged by
//! intervals, and what was exceeded is laid at the door of files, processes and paths by one recorded launch more.
//!
//! Owns the order of work and the exit code. Launching is that of `slowpath launch` with one arm.

use crate::arguments::check::CheckArguments;
use crate::arguments::settings;
use crate::commands::{analyze, invoker, show};
use crate::failure::{Failure, Kind};
use crate::progress::Progress;
use crate::target::Target;
use crate::unprivileged::{Work, as_user};
use crate::{foreign_file, interrupt, recorded_launch};
use slowpath_budget::checked::{Launched, Looked, assembled, judged};
use slowpath_budget::outcome::{self, CheckedLimit};
use slowpath_budget::responsible::{Seen, examine};
use slowpath_budget::{self as budget, Budget, Check, Limit, Times, Verdict};
use slowpath_report::terminal;
use slowpath_tables::missing::declared;
use slowpath_verify::ArmResult;
use slowpath_verify::benchmark::{LaunchArm, arms, compared};
use slowpath_verify::conditions::Conditions;
use slowpath_verify::recorded_launch::record;
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
    let given = given.map(|directory| of_directory(directory, &budget.limits)).transpose()?;
    let invocation = arguments.invocation(budget.ready.as_ref());
    let arms = [arms::one(&(&invocation).into(), arguments.target.clone())?];
    let target = &arms[0].target;
    super::warn(target);
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
        None => of_launch(target, &mut conditions, &budget.limits, &progress)?,
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
        recording: arguments.recording.as_ref().map(|directory| directory.to_string_lossy().into_owned()),
        ended,
    };
    let check = assembled(launched, &result, limits, looked);
    show(arguments.json, &check, |shown, _| terminal::check(shown));
    Ok(finish(&check, arguments.strict))
}

/// Reads the budget as the user whose file it is.
fn read(path: &Path) -> Result<Budget, Failure> {
    let unusable = |problem: &str| {
        Failure::new(Kind::Usage, format!("the budget {} cannot be used: {problem}", path.display()))
            .hint("docs/check.md shows a budget")
    };
    as_user(&invoker()?, &Work::reading("reading the budget"), || {
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

/// Reads a recording that exists, as the caller.
fn of_directory(directory: &Path, limits: &[Limit]) -> Result<Seen, Failure> {
    as_user(&invoker()?, &Work::reading("analysing the recording"), || Ok(examine(&analyze::open(directory)?, limits)))
}

/// Records one more launch. What the machine cannot do is no error.
fn of_launch(
    target: &Target,
    conditions: &mut Conditions,
    limits: &[Limit],
    progress: &Progress,
) -> Result<Looked, Failure> {
    let gaps = recorded_launch::gaps();
    if !gaps.is_empty() {
        return Ok(Looked::Impossible(gaps));
    }
    progress.step("recording one more launch: who is responsible?");
    let seen = record(target, conditions).and_then(|recorded| {
        let what = Work::reading("analysing the recording");
        as_user(&target.identity, &what, || Ok(examine(&analyze::open(&recorded.directory())?, limits)))
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
