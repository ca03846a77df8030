//! `slowpath android context`: story 5's chain, of two contexts that were copied from a device.

use crate::arguments::android::AndroidContextArguments;
use crate::failure::{Failure, Kind, failed};
use crate::printing::show;
use slowpath_context::named::existing;
use slowpath_context::{Here, Snapshot, plan};
use slowpath_report::{ContextComparison, terminal};
use std::ffi::OsStr;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &AndroidContextArguments) -> Result<ExitCode, Failure> {
    let (app, shell) = (read(&arguments.app)?, read(&arguments.shell)?);
    let here = Here::now().map_err(failed(Kind::Machine))?;
    let comparison = ContextComparison::new(&app, &shell, &plan(&app, &shell, &here));
    show(arguments.json, &comparison, terminal::context_comparison);
    Ok(ExitCode::SUCCESS)
}

/// A copy: a process of this machine is none of a phone's.
fn read(word: &OsStr) -> Result<Snapshot, Failure> {
    let none = || {
        Failure::new(Kind::Usage, format!("{} is no copy of a context", word.to_string_lossy()))
            .hint("copy `/proc/PID/status` of the process: `adb shell cat /proc/PID/status > FILE`")
    };
    existing(word)?.ok_or_else(none)
}
