//! `slowpath explain`: what a name of a finding, fix, context factor, family of artifacts, arm or verdict means, or of
//! what is unavailable.

use crate::arguments::ExplainArguments;
use crate::commands::print_json;
use crate::failure::{Failure, Kind};
use slowpath_report::explain::{self, EXPLAIN_SCHEMA, Explanation, Explanations, all};
use slowpath_report::terminal::{self, Style};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ExplainArguments) -> Result<ExitCode, Failure> {
    let names = match &arguments.name {
        Some(name) => named(name)?,
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

/// What has this name; where nothing has, names that are near.
fn named(name: &str) -> Result<Vec<Explanation>, Failure> {
    let found = explain::named(name);
    if !found.is_empty() {
        return Ok(found);
    }
    let likely = explain::likely(name);
    let hint = match likely.as_slice() {
        [] => "`slowpath explain` lists all names".to_owned(),
        likely => format!("perhaps {}; `slowpath explain` lists all names", likely.join(", ")),
    };
    Err(Failure::new(Kind::Usage, format!("nothing is called {name:?}")).hint(&hint))
}
