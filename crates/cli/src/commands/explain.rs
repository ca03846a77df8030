//! `slowpath explain`: what a name of a finding, fix, context factor, family of artifacts, arm or verdict means, or of
//! what is unavailable.

use crate::arguments::ExplainArguments;
use crate::commands::print_json;
use crate::failure::Failure;
use slowpath_report::explain::{EXPLAIN_SCHEMA, Explanations, all, found};
use slowpath_report::terminal::{self, Style};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ExplainArguments) -> Result<ExitCode, Failure> {
    let names = match &arguments.name {
        Some(name) => found(name)?,
        None => all(),
    };
    if arguments.json {
        print_json(&Explanations { schema: EXPLAIN_SCHEMA, names });
    } else if arguments.name.is_some() {
        print!("{}", terminal::explained(&names, &Style::detect(std::io::stdout().is_terminal())));
    } else {
        print!("{}", terminal::names(&names));
    }
    Ok(ExitCode::SUCCESS)
}
