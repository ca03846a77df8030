//! `slowpath ipc doctor`.

use crate::failure::Failure;
use crate::printing::show;
use slowpath_report::ipc::doctor::text;
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(json: bool) -> Result<ExitCode, Failure> {
    show(json, &slowpath_ipc::doctor::examine(), |doctor, _| text(doctor));
    Ok(ExitCode::SUCCESS)
}
