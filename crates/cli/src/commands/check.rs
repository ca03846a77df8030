//! `slowpath check`: a budget for the launches of a command, for a pipeline. The work is `slowpath_budget::launched`'s.

use crate::arguments::check::CheckArguments;
use crate::command_target;
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_budget::launched::{CheckWanted, check, of_directory, read};
use slowpath_budget::{Check, Verdict, outcome};
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::interrupt;
use slowpath_verify::benchmark::arms;
use slowpath_verify::conditions::Conditions;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &CheckArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    let budget = read(&arguments.budget)?;
    let progress = Progress::new(arguments.quiet);
    let seen = |directory: &Path| {
        Ok::<_, Failure>((
            directory.to_string_lossy().into_owned(),
            of_directory(directory, &budget.limits, &progress)?,
        ))
    };
    let given = arguments.recording.as_deref().map(seen).transpose()?;
    let invocation = arguments.invocation(budget.ready.as_ref());
    let arm = arms::one(&(&invocation).into(), arguments.target.clone())?;
    command_target::warn(&arm.target);
    let targets = std::iter::once(&arm.target);
    let mut conditions = Conditions::prepare(arguments.device.settings(), budget.cold, targets, &progress)?;
    let (max_time, seed) = (arguments.max_time, arguments.seed);
    let check = check(CheckWanted { budget: &budget, arm, max_time, seed, given }, &mut conditions, &progress)?;
    show(arguments.json, &check, |shown, _| terminal::check(shown));
    Ok(finish(&check, arguments.strict))
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
