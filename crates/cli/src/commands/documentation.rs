//! `slowpath completions` and `slowpath man`: what is installed beside the program, from the declaration of its arguments.

use crate::arguments::Arguments;
use crate::arguments::documentation::{CompletionsArguments, ManArguments};
use crate::failure::{Failure, Kind, failed};
use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

/// Prints the script that completes commands, options and the names that `explain` knows.
pub fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    // `explain` itself takes names as people spell them; a shell offers those that are there.
    let names: BTreeSet<String> = slowpath_report::explain::all().into_iter().map(|one| one.name).collect();
    let is_word = |name: &String| !name.contains(' ');
    let names = PossibleValuesParser::new(names.into_iter().filter(is_word));
    let mut command = Arguments::command();
    // Declares the arguments of every command.
    command.build();
    let mut command =
        command.mut_subcommand("explain", |explain| explain.mut_arg("name", |name| name.value_parser(names)));
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "slowpath", &mut script);
    // The script goes to a shell, not to a screen: as it is.
    std::io::stdout().lock().write_all(&script).map_err(failed(Kind::Machine))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for the program and one for each of its commands.
pub fn man(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    let directory = &arguments.directory;
    let unwritable = |error: std::io::Error| {
        Failure::new(Kind::Usage, format!("{} cannot be written: {error}", directory.display()))
            .hint("name a directory that belongs to you")
    };
    std::fs::create_dir_all(directory).map_err(unwritable)?;
    // `slowpath help COMMAND` shows what each page says; a page of its own would list the commands once more.
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command, directory).map_err(unwritable)?;
    Ok(ExitCode::SUCCESS)
}
