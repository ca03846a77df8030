//! `slowpath context bisect`: which difference of two contexts makes the same command slower.

use crate::arguments::context::ContextBisectArguments;
use crate::command_target;
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_report::{context_bisection_of, progress::Progress, terminal};
use slowpath_session::interrupt;
use slowpath_verify::context_bisection::{self, Wanted, patience};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ContextBisectArguments) -> Result<ExitCode, Failure> {
    let wanted = Wanted {
        fast: arguments.fast.clone(),
        slow: arguments.slow.clone(),
        command: arguments.command.clone(),
        invocation: (&arguments.invocation).into(),
        trust_context: arguments.trust.trust_context,
        metric: arguments.metric,
        max_time: arguments.max_time,
        seed: arguments.seed,
    };
    let patience = patience(wanted.max_time);
    let target = command_target::of(wanted.invocation.clone(), &wanted.command, Some(patience))?;
    let progress = Progress::new(arguments.quiet);
    let bisected = context_bisection::run(&wanted, &target, &progress)?;
    progress.done();
    let found = context_bisection_of(&wanted, &bisected);
    show(arguments.json, &found, terminal::context_bisection);
    Ok(if interrupt::requested() { ExitCode::from(Kind::Interrupted as u8) } else { ExitCode::SUCCESS })
}
