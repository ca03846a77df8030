//! `slowpath fleet`: becomes the Python package `slowpath-fleet`, as the user who called.

use crate::arguments::fleet::FleetArguments;
use crate::failure::Failure;
use slowpath_session::fleet_package::become_package;
use std::process::ExitCode;

/// Returns only when the package could not be started.
pub fn run(arguments: &FleetArguments) -> Result<ExitCode, Failure> {
    match become_package("slowpath fleet", &arguments.words)? {}
}
