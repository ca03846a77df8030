//! `slowpath context run`: a command in the context of a process or of a saved one.

use crate::arguments::{ContextRunArguments, InvocationArguments};
use crate::failure::{Failure, Kind};
use crate::interrupt::{self, Interruptible};
use crate::target::{Target, launch_failure, launcher};
use slowpath_context::{Here, Plan, named, plan};
use slowpath_launch::{EndPolicy, Exit, LaunchSpec, Launcher, ReadyWhen, StdioPolicy};
use slowpath_report::terminal::escape_terminal;
use std::process::ExitCode;

/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// Runs the command.
pub(super) fn run(arguments: &ContextRunArguments) -> Result<ExitCode, Failure> {
    let invocation = InvocationArguments {
        user: arguments.user.clone(),
        ready: ReadyWhen::Exit,
        timeout: None,
        env: arguments.env.clone(),
    };
    let context = named::named(&arguments.subject, &(&invocation).into())?;
    let target = Target::of(&invocation, arguments.command.clone(), None)?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    let (base, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Inherit)?;
    let plan = plan(&context, &context, &Here::for_target(&target.identity, arguments.trust.trust_context));
    for line in missing(&plan) {
        eprintln!("slowpath: {line}");
    }
    if arguments.dry_run {
        applied(&plan, &base).iter().for_each(|line| println!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = plan.prepare(&base).map_err(|error| Failure::from(&error))?;
    let spec = prepared.spec(&[]).map_err(|error| Failure::from(&error))?;
    let outcome = launcher().launch(&spec, &mut Interruptible).map_err(|error| launch_failure(&error))?;
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    Ok(exit_code(outcome.exit))
}

/// The status of a command as slowpath's own.
pub fn exit_code(exit: Option<Exit>) -> ExitCode {
    ExitCode::from(match exit {
        // An exit status has eight bits.
        Some(Exit::Code(code)) => code as u8,
        Some(Exit::Signal(signal)) => (BY_SIGNAL + signal) as u8,
        None => Kind::Target as u8,
    })
}

/// What of the context the command will not have, and why.
fn missing(plan: &Plan) -> Vec<String> {
    let lacking = plan.lacking.iter().map(|one| {
        format!(
            "{} stays {} and does not become {}: {}",
            one.name,
            quoted(&one.slow),
            quoted(&one.fast),
            escape_terminal(&one.why)
        )
    });
    // A context is read as both sides of a comparison: each gap is told twice.
    let unread = plan.unavailable.iter().filter_map(|gap| {
        let reason = gap.reason.strip_prefix("in the fast context: ")?;
        Some(format!("{} is not known: {}", gap.what, escape_terminal(reason)))
    });
    lacking.chain(unread).collect()
}

fn applied(plan: &Plan, base: &LaunchSpec) -> Vec<String> {
    let changes = plan.applied_to(base);
    if changes.is_empty() {
        return vec!["nothing differs from the caller's own context".to_owned()];
    }
    changes
        .iter()
        .map(|one| format!("{}: {} (here {})", escape_terminal(&one.name), quoted(&one.value), quoted(&one.own)))
        .collect()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape_terminal(text))
}
