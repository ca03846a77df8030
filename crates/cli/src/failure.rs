//! How a command fails: an exit code, the chain of causes, and a hint that fits.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | a verdict or a check failed |
//! | 2 | wrong usage, or an input that is not what it should be |
//! | 3 | this machine cannot do it; the message says why and what would change that |
//! | 4 | the target failed: it could not be executed, or was not ready |
//! | 130 | interrupted |

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
