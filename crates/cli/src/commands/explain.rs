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
    let (wanted, others) = (name.to_lowercase().replace(['-', ' '], "_"), all());
    let likely = |one: &&Explanation| {
        let parts = wanted.split('_').filter(|part| part.len() > 2);
        parts.into_iter().any(|part| one.name.contains(part) || one.title.contains(part))
    };
    let mut likely: Vec<&str> = others.iter().filter(likely).map(|one| one.name.as_str()).collect();
    likely.truncate(5);
    let hint = match likely.as_slice() {
        [] => "`slowpath explain` lists all names".to_owned(),
        likely => format!("perhaps {}; `slowpath explain` lists all names", likely.join(", ")),
    };
    Err(Failure::new(
        Kind::Usage,
        format!("there is no finding, fix, context factor, family of artifacts, outcome, arm, verdict or gap {name:?}"),
    )
    .hint(&hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_people_write_them() {
        assert_eq!(named("cold-file-reads").unwrap()[0].name, "cold_file_reads");
        assert_eq!(named("python-bytecode").unwrap()[0].name, "python_bytecode");
        assert_eq!(named("Not shown").unwrap()[0].name, "not_shown");
        assert_eq!(named("probe first_wait").unwrap()[0].name, "probe <name>");
        assert_eq!(named("whole_files").unwrap()[0].name, "whole_files");
        assert_eq!(named("readahead_512k").unwrap()[0].name, "readahead_<kib>k");
        assert_eq!(named("time ledger").unwrap()[0].name, "time ledger");
    }

    #[test]
    fn an_unknown_name_leads_to_likely_ones() {
        let failure = named("file_reads").unwrap_err();
        assert_eq!(failure.kind(), Kind::Usage);
        let hint = format!("{failure:?}");
        assert!(hint.contains("cold_file_reads"), "{hint}");
    }
}
