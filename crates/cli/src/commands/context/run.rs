//! `slowpath context run`: a command in the context of a process or of a saved one.

use crate::arguments::context::ContextRunArguments;
use crate::arguments::target::InvocationArguments;
use crate::failure::{Failure, Kind};
use crate::{command_target, exit_code};
use slowpath_context::{Here, named, plan};
use slowpath_launch::{EndPolicy, Launcher, StdioPolicy};
use slowpath_report::terminal::{context_applied, context_not_applied};
use slowpath_session::interrupt::{self, Interruptible};
use slowpath_session::target::{launch_failure, launcher};
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(arguments: &ContextRunArguments) -> Result<ExitCode, Failure> {
    let invocation = InvocationArguments::until_exit(&arguments.user, &arguments.env);
    let context = named::named(&arguments.subject, &(&invocation).into())?;
    let target = command_target::of(&invocation, &arguments.command, None)?;
    let (base, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Inherit)?;
    let plan = plan(&context, &context, &Here::for_target(&target.identity, arguments.trust.trust_context));
    for line in context_not_applied(&plan) {
        eprintln!("slowpath: {line}");
    }
    if arguments.dry_run {
        context_applied(&plan, &base).iter().for_each(|line| println!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = plan.prepare(&base).map_err(|error| Failure::from(&error))?;
    let spec = prepared.spec(&[]).map_err(|error| Failure::from(&error))?;
    let outcome = launcher().launch(&spec, &mut Interruptible).map_err(|error| launch_failure(&error))?;
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    Ok(exit_code::of_command(outcome.exit))
}
