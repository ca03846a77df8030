//! How a command ends: its exit code; and where it fails, the chain of causes, and a hint that fits.
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

use slowpath_launch::Exit;
use slowpath_report::terminal::escape_terminal;
use slowpath_session::failure::PrintedFailure;
use slowpath_session::interrupt;
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

/// The exit code after launches: those that failed are reported, whatever else was found, and so is ctrl-C.
pub fn launched(failed: u32, what: &str) -> ExitCode {
    match failed {
        0 if interrupt::requested() => ExitCode::from(Kind::Interrupted as u8),
        0 => ExitCode::SUCCESS,
        _ => {
            eprintln!("slowpath: {failed} {what} failed; they are counted and not timed");
            ExitCode::from(Kind::Target as u8)
        }
    }
}

/// The status of a command as slowpath's own.
pub fn exit_code(exit: Option<Exit>) -> ExitCode {
    ExitCode::from(exit.map_or(Kind::Target as u8, Exit::status))
}
