//! `slowpath ipc compare`.

use super::chosen::{say_gaps, transports};
use super::ending::{interrupted, ipc_failure};
use crate::arguments::ipc::IpcCompareArguments;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_ipc::comparison::{Plan, compare};
use slowpath_report::ipc::comparison::text;
use slowpath_session::interrupt;
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(arguments: &IpcCompareArguments) -> Result<ExitCode, Failure> {
    let (transports, gaps) = transports(&arguments.transports)?;
    let plan = Plan { transports, size: arguments.size, blocks: arguments.blocks as usize, seed: arguments.seed };
    let mut comparison = compare(&plan, &interrupt::requested).map_err(ipc_failure)?;
    comparison.unavailable = gaps;
    if !arguments.json {
        say_gaps(&comparison.unavailable);
    }
    show(arguments.json, &comparison, |comparison, _| text(comparison));
    Ok(if comparison.complete { ExitCode::SUCCESS } else { interrupted() })
}
