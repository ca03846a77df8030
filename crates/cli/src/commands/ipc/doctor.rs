//! `slowpath ipc doctor`.

use crate::commands::print_json;
use crate::failure::Failure;
use slowpath_report::ipc::doctor::text;
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(json: bool) -> Result<ExitCode, Failure> {
    let doctor = slowpath_ipc::doctor::examine();
    if json {
        print_json(&doctor);
    } else {
        print!("{}", text(&doctor));
    }
    Ok(ExitCode::SUCCESS)
}
