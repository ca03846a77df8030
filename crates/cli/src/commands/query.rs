//! `slowpath query`: becomes the command `query` of the Python package `slowpath-fleet`, as the user who called.

use crate::arguments::query::QueryArguments;
use crate::failure::Failure;
use slowpath_session::fleet_package::become_package;
use std::ffi::OsString;
use std::process::ExitCode;

/// Returns only when the package could not be started.
pub fn run(arguments: &QueryArguments) -> Result<ExitCode, Failure> {
    let mut words: Vec<OsString> = vec!["query".into()];
    words.extend(arguments.json.then(|| "--json".into()));
    words.extend(arguments.csv.then(|| "--csv".into()));
    // What follows is no option, whatever it begins with.
    words.push("--".into());
    words.push(arguments.recording.clone().into());
    words.extend(arguments.sql.as_ref().map(OsString::from));
    match become_package("slowpath query", &words)? {}
}
