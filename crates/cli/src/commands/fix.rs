//! `slowpath fix`: what a diagnosis proved becomes a change that a person can read before it is made, and take back.

use crate::arguments::fix::{FixApplyArguments, FixArguments, FixCommand, FixUndoArguments};
use crate::commands::print_json;
use crate::failure::{Failure, Kind};
use serde::Serialize;
use slowpath_diagnose::kept;
use slowpath_report::terminal::{fix_applied, fix_list, fix_shown, fix_undone};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &FixArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        FixCommand::List { directory, json } => say(*json, &kept::list(directory)?, fix_list),
        FixCommand::Show(arguments) => {
            let shown = kept::show(&arguments.directory, &arguments.name, &arguments.target.options())?;
            say(arguments.json, &shown, fix_shown);
        }
        FixCommand::Apply(arguments) => return apply(arguments),
        FixCommand::Undo(arguments) => undo(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn say<T: Serialize>(json: bool, value: &T, text: impl Fn(&T) -> String) {
    if json {
        print_json(value);
    } else {
        print!("{}", text(value));
    }
}

fn apply(arguments: &FixApplyArguments) -> Result<ExitCode, Failure> {
    let done = kept::apply(&arguments.directory, &arguments.name, &arguments.target.options(), arguments.unproved)?;
    say(arguments.json, &done, fix_applied);
    if !done.applied {
        eprintln!("slowpath: nothing was applied: no option says where");
        return Ok(ExitCode::from(Kind::Usage as u8));
    }
    Ok(ExitCode::SUCCESS)
}

fn undo(arguments: &FixUndoArguments) -> Result<(), Failure> {
    let done = kept::undo(&arguments.directory, arguments.name.as_deref(), arguments.keep_changed)?;
    say(arguments.json, &done, fix_undone);
    Ok(())
}
