//! How a command that fails says so: the chain of causes, a hint that fits, and its code. Leaves all other ends to `exit_code`.

pub use slowpath_session::failure::{Failure, Kind, failed};

use slowpath_report::terminal::escape_terminal;
use slowpath_session::failure::PrintedFailure;
use slowpath_tables::escape_json;
use std::process::ExitCode;

/// Prints a failure (in JSON on standard output when `json`) and gives the exit code.
pub fn report(failure: &Failure, json: bool) -> ExitCode {
    if json {
        // One line: among the lines of `artifacts guard --json` too.
        let line = serde_json::to_string(&PrintedFailure::from(failure)).unwrap_or_default();
        println!("{}", escape_json(&line));
    }
    eprintln!("slowpath: {}", escape_terminal(failure.message()));
    for cause in failure.causes() {
        eprintln!("  because: {}", escape_terminal(cause));
    }
    if let Some(hint) = failure.advice() {
        eprintln!("  hint: {}", escape_terminal(hint));
    }
    ExitCode::from(failure.kind() as u8)
}
