//! `slowpath fix`: what a diagnosis proved becomes a change that a person can read before it is made, and take back.

use crate::arguments::fix::{FixApplyArguments, FixArguments, FixCommand, FixUndoArguments};
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_diagnose::kept;
use slowpath_report::terminal::{fix_applied, fix_list, fix_shown, fix_undone};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &FixArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        FixCommand::List { directory, json } => show(*json, &kept::list(directory)?, |list, _| fix_list(list)),
        FixCommand::Show(arguments) => {
            let shown = kept::show(&arguments.directory, &arguments.name, &arguments.target.options())?;
            show(arguments.json, &shown, |shown, _| fix_shown(shown));
        }
        FixCommand::Apply(arguments) => return apply(arguments),
        FixCommand::Undo(arguments) => undo(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn apply(arguments: &FixApplyArguments) -> Result<ExitCode, Failure> {
    let (options, trusted) = (arguments.target.options(), arguments.trust_diagnosis.as_deref());
    let done = kept::apply(&arguments.directory, &arguments.name, &options, arguments.unproved, trusted)?;
    show(arguments.json, &done, |done, _| fix_applied(done));
    if !done.applied {
        eprintln!("slowpath: nothing was applied: no option says where");
        return Ok(ExitCode::from(Kind::Usage as u8));
    }
    Ok(ExitCode::SUCCESS)
}

fn undo(arguments: &FixUndoArguments) -> Result<(), Failure> {
    let done = kept::undo(&arguments.directory, arguments.name.as_deref(), arguments.keep_changed)?;
    show(arguments.json, &done, |done, _| fix_undone(done));
    Ok(())
}
