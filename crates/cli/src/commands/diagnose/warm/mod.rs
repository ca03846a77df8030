//! A warm diagnosis: one recorded launch, what it hides, the fixes that change a launch, and warm launches with and without them.
//!
//! No lab is made, and nothing outside the launches is changed. Findings lead to fixes by name, fixes to arms by what they set:
//! nothing here knows of a particular finding or fix.

mod arms;
mod recorded;
mod summary;

use crate::arguments::DiagnoseArguments;
use crate::commands::launch::benchmark::{Launched, Launches};
use crate::commands::launch::conditions::Conditions;
use crate::failure::{Failure, Kind};
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use crate::{interrupt, output_directory, recorded_launch};
use arms::WarmArm;
use slowpath_verify::{Comparison, Role, Sample};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Runs it.
pub fn run(arguments: &DiagnoseArguments) -> Result<ExitCode, Failure> {
    recorded_launch::require("diagnose", false)?;
    recorded_launch::require_profile("diagnose")?;
    interrupt::watch();
    let target = super::target(arguments)?;
    let directory = output_directory::prepare(&arguments.output, &target.identity)?;
    let progress = Progress::new(arguments.quiet);

    recorded::warm_up(&target, &progress)?;
    recorded::record(&target, &directory, &progress)?;
    let found = recorded::found(&target, &directory, &progress)?;

    let mut conditions = Conditions::Warm;
    let arms = arms::choose(&target, &found.proposals);
    let (arms, failing) = able(arms, &mut conditions, arguments.seed, &progress)?;
    let compared = compare(arguments, &arms, &mut conditions, &progress)?;
    progress.step("writing the report");
    let diagnosis = summary::summarize(&summary::Input {
        target: &target,
        directory: &directory,
        arms: &arms,
        failing: &failing,
        comparison: compared.as_ref(),
        found: &found,
        seed: arguments.seed,
        conditions: conditions.words(),
    })?;
    let what = Work::writing_beneath("writing the report", &directory);
    as_user(&target.identity, &what, || super::save(&directory, &diagnosis))?;
    progress.done();
    super::show(arguments, &directory, &diagnosis);
    Ok(ExitCode::SUCCESS)
}

fn interrupted() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted; the recording is kept")
}

fn launched(arms: &[WarmArm]) -> Vec<Launched<'_>> {
    let one = arms.iter().map(|one| Launched { arm: one.arm.clone(), target: &one.target, padding: one.padding });
    one.collect()
}

/// The arms that get ready in their first launch, which warms them up and does not count; and the fixes with which the program
/// fails, by the place of their proposal, with the reason.
fn able(
    mut arms: Vec<WarmArm>,
    conditions: &mut Conditions,
    seed: u64,
    progress: &Progress,
) -> Result<(Vec<WarmArm>, BTreeMap<usize, String>), Failure> {
    let mut failing = BTreeMap::new();
    let mut are_able = vec![true; arms.len()];
    let mut launches = Launches::new(launched(&arms), conditions, seed);
    for (number, arm) in arms.iter().enumerate() {
        progress.step(format!("warming up: {}", arm.arm.name));
        match launches.one(number, 0)? {
            Sample::Stopped => return Err(interrupted()),
            Sample::Failed(reason) => match (arm.arm.role, arm.proposal) {
                (Role::Fix, Some(proposal)) => {
                    are_able[number] = false;
                    failing.insert(proposal, reason);
                }
                _ => {
                    let name = &arm.arm.name;
                    return Err(Failure::new(Kind::Target, format!("{name} failed in its first launch: {reason}")));
                }
            },
            Sample::Measured(_) | Sample::Discarded(_) => {}
        }
    }
    drop(launches);
    let mut are_able = are_able.into_iter();
    arms.retain(|_| are_able.next().unwrap_or(true));
    if !arms.iter().any(|arm| arm.arm.role == Role::Fix) {
        arms.clear();
    }
    Ok((arms, failing))
}

/// Runs the blocks; nothing where no fix can be tried.
fn compare(
    arguments: &DiagnoseArguments,
    arms: &[WarmArm],
    conditions: &mut Conditions,
    progress: &Progress,
) -> Result<Option<Comparison>, Failure> {
    if arms.is_empty() {
        return Ok(None);
    }
    let launches = Launches::new(launched(arms), conditions, arguments.seed);
    let compared = launches.compare(arguments.runs as usize, progress, |_, _| false);
    match compared {
        Ok(compared) if compared.stopped => Err(interrupted()),
        Ok(compared) => Ok(Some(compared)),
        Err(failure) if failure.is_interruption() => Err(interrupted()),
        Err(failure) => Err(failure),
    }
}
