//! Exit codes: what each means, and that of a command that has printed its result. Leaves what a failure says to `failure`.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | a verdict or a check failed |
//! | 2 | wrong usage, or an input that is not what it should be |
//! | 3 | this machine cannot do it; the message says why and what would change that |
//! | 4 | the target failed: it could not be executed, or was not ready |
//! | 130 | interrupted |

use slowpath_launch::Exit;
use slowpath_session::{failure::Kind, interrupt};
use std::process::ExitCode;

/// After launches, which `what` names: those that failed are reported, whatever else was found, and so is ctrl-C.
pub fn after_launches(failed: u32, what: &str) -> ExitCode {
    match failed {
        0 if interrupt::requested() => ExitCode::from(Kind::Interrupted as u8),
        0 => ExitCode::SUCCESS,
        _ => {
            eprintln!("slowpath: {failed} {what} failed; they are counted and not timed");
            ExitCode::from(Kind::Target as u8)
        }
    }
}

/// The status of the command that was run as slowpath's own.
pub fn of_command(exit: Option<Exit>) -> ExitCode {
    ExitCode::from(exit.map_or(Kind::Target as u8, Exit::status))
}
