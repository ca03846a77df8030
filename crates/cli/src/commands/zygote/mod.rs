//! `slowpath zygote`: preload once, fork isolated children. What a zygote does is `slowpath_zygote`'s.

mod advise;
mod bench;
mod preloaded;
mod serve;
mod spawn;

#[cfg(test)]
pub use {serve::Served, spawn::SpawnedChild, spawn::ZygoteStatus};

use crate::arguments::{ZygoteArguments, ZygoteCommand};
use crate::failure::{Failure, Kind};
use slowpath_zygote::{RefusalKind, SpawnError};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ZygoteArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        ZygoteCommand::Serve(arguments) => serve::run(arguments),
        ZygoteCommand::Spawn(arguments) => spawn::run(arguments),
        ZygoteCommand::Status(arguments) => spawn::status(arguments),
        ZygoteCommand::Bench(arguments) => bench::run(arguments),
        ZygoteCommand::Advise(arguments) => advise::run(arguments),
    }
}

/// Why there is no child, by what it means for the caller.
fn spawn_failure(error: &SpawnError) -> Failure {
    let (kind, hint) = match error {
        SpawnError::Refused(refusal) if refusal.kind == RefusalKind::Malformed => (Kind::Usage, None),
        SpawnError::Refused(refusal) if refusal.kind == RefusalKind::NotAllowed => {
            (Kind::Machine, Some("the policy of the zygote says who may ask for what: docs/zygote.md"))
        }
        SpawnError::NoZygote { .. } => {
            (Kind::Machine, Some("`slowpath zygote serve --socket PATH --preload WHAT` starts one"))
        }
        _ => (Kind::Machine, None),
    };
    let failure = Failure::from_error(kind, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
