//! `slowpath layout`: the order of a binary's code.
//!
//! Traces, orders and binaries are read as the invoker, without privilege; a command is traced as its user.

mod trace;
mod trial;

use crate::arguments::layout::{BEST, LayoutArguments, LayoutCommand, LayoutOrderArguments};
use crate::failure::Failure;
use crate::printing::show;
use slowpath_layout::ordered::{OrderWanted, make};
use slowpath_layout::repacked::{self, RepackWanted};
use slowpath_layout::{explained::explained, scored::scored};
use slowpath_report::terminal::{layout_order, layout_repacked, layout_score, layout_why};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &LayoutArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        LayoutCommand::Trace(arguments) => return trace::run(arguments),
        LayoutCommand::Try(arguments) => return trial::run(arguments),
        LayoutCommand::Order(arguments) => order(arguments)?,
        LayoutCommand::Repack(arguments) => {
            let wanted = RepackWanted {
                binary: arguments.binary.clone(),
                orders: arguments.order.clone(),
                prelink: arguments.prelink,
                most_headers: arguments.max_headers.into(),
                output: arguments.output.clone(),
            };
            let what = Work::writing("copying the binary", arguments.output.as_path());
            let made = as_user(&invoker()?, &what, || repacked::make(&wanted))?;
            show(arguments.json, &made, |made, _| layout_repacked(made));
        }
        LayoutCommand::Score(arguments) => {
            let scored = as_user(&invoker()?, &Work::reading("scoring the order"), || {
                scored(&arguments.binary, &arguments.traces, arguments.order.as_deref())
            })?;
            show(arguments.json, &scored, |scored, _| layout_score(scored));
        }
        LayoutCommand::Why(arguments) => {
            let explained = as_user(&invoker()?, &Work::reading("reading the binary"), || {
                explained(&arguments.binary, &arguments.traces)
            })?;
            show(arguments.json, &explained, |explained, _| layout_why(explained));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn order(arguments: &LayoutOrderArguments) -> Result<(), Failure> {
    let wanted = OrderWanted {
        traces: arguments.traces.clone(),
        object: arguments.object.clone(),
        algorithm: arguments.algorithm.clone(),
        linker: arguments.linker.clone(),
        names_of: arguments.names_of.clone(),
        output: arguments.output.clone(),
    };
    let what = Work::writing("making the order", arguments.output.as_path());
    let made = as_user(&invoker()?, &what, || make(&wanted))?;
    show(arguments.json, &made, |made, _| layout_order(made, arguments.algorithm == BEST));
    Ok(())
}
