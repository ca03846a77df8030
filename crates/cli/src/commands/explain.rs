//! `slowpath explain`: what a name of a finding, fix, context factor, family of artifacts, arm or verdict means, or of
//! what is unavailable.

use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_report::explain::{EXPLAIN_SCHEMA, Explanations, all, found};
use slowpath_report::terminal;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ExplainArguments) -> Result<ExitCode, Failure> {
    let names = match &arguments.name {
        Some(name) => found(name)?,
        None => all(),
    };
    let explained = Explanations { schema: EXPLAIN_SCHEMA, names };
    show(arguments.json, &explained, |explained, style| match &arguments.name {
        Some(_) => terminal::explained(&explained.names, style),
        None => terminal::names(&explained.names),
    });
    Ok(ExitCode::SUCCESS)
}
