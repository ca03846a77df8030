//! `slowpath context`: what surrounds a process and can make the same code slower.

mod bisect;
mod run;
mod syscall_cost;

use crate::arguments::context::{ContextArguments, ContextCommand, ContextDiffArguments, ContextReadArguments};
use crate::failure::Failure;
use crate::printing::show;
use slowpath_context::{Here, Snapshot, named};
use slowpath_report::{ContextComparison, ShownContext, terminal};
use slowpath_session::target::{Target, invoker};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{interrupt, whole_file};
use slowpath_tables::escape_json;
use std::path::Path;
use std::process::ExitCode;

/// Mode of a saved context: it holds paths and words of a command.
const MODE: u32 = 0o600;

/// Runs the command.
pub fn run(arguments: &ContextArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    match &arguments.command {
        ContextCommand::Show { read, json } => show_context(read, *json),
        ContextCommand::Save { read, output } => save(read, output),
        ContextCommand::Diff(arguments) => diff(arguments),
        ContextCommand::SyscallCost(arguments) => syscall_cost::run(arguments),
        ContextCommand::Bisect(arguments) => return bisect::run(arguments),
        ContextCommand::Run(arguments) => return run::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn read(arguments: &ContextReadArguments) -> Result<Snapshot, Failure> {
    match &arguments.subject {
        Some(word) => named::named(word, &(&arguments.invocation).into()),
        None => named::launched(&(&arguments.invocation).into(), arguments.command.clone()),
    }
}

fn show_context(arguments: &ContextReadArguments, json: bool) -> Result<(), Failure> {
    let shown = ShownContext::new(read(arguments)?);
    show(json, &shown, terminal::context);
    Ok(())
}

fn save(arguments: &ContextReadArguments, output: &Path) -> Result<(), Failure> {
    let shown = ShownContext::new(read(arguments)?);
    let mut text = escape_json(&serde_json::to_string_pretty(&shown).unwrap_or_default());
    text.push('\n');
    let what = Work::writing("saving the context", output);
    as_user(&invoker()?, &what, || whole_file::replace(output, MODE, text.as_bytes()))
}

fn diff(arguments: &ContextDiffArguments) -> Result<(), Failure> {
    let invocation = (&arguments.invocation).into();
    let a = named::named(&arguments.a, &invocation)?;
    let b = named::named(&arguments.b, &invocation)?;
    let target = Target::of(&arguments.invocation, Vec::new(), None)?;
    let here = Here::for_target(&target.identity, arguments.trust.trust_context);
    let comparison = ContextComparison::new(&a, &b, &slowpath_context::plan(&a, &b, &here));
    show(arguments.json, &comparison, terminal::context_comparison);
    Ok(())
}
