//! `slowpath zygote`: preload once, fork isolated children. What a zygote does is `slowpath_zygote`'s.

mod advise;
mod bench;
mod serve;
mod spawn;

use crate::arguments::zygote::{ZygoteArguments, ZygoteCommand, ZygotePreloadArguments};
use crate::failure::{Failure, Kind};
use slowpath_zygote::preload::Preload;
use slowpath_zygote::{PreloadError, PreloadWanted, RefusalKind, SpawnError};
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

/// What is preloaded.
fn preload(arguments: &ZygotePreloadArguments) -> Result<Preload, Failure> {
    let ZygotePreloadArguments { preload, entry, python } = arguments;
    let wanted = PreloadWanted { what: preload.clone(), entry: entry.clone(), python: python.clone() };
    Preload::of(&wanted).map_err(|error| {
        let kind = if matches!(error, PreloadError::NoLibrary) { Kind::Machine } else { Kind::Usage };
        Failure::from_error(kind, &error).hint_if_any(error.remedy())
    })
}

/// Why there is no child, by what it means for the caller.
fn spawn_failure(error: &SpawnError) -> Failure {
    let (kind, hint) = match error {
        SpawnError::Refused(refusal) if refusal.kind == RefusalKind::Malformed => (Kind::Usage, None),
        SpawnError::Refused(refusal) if refusal.kind == RefusalKind::NotAllowed => {
            (Kind::Machine, Some("the policy of the zygote says who may ask for what: docs/zygote.md"))
        }
        SpawnError::NoZygote { source, .. } if source.kind() == std::io::ErrorKind::TimedOut => (
            Kind::Machine,
            Some("`ss -xlp` shows root who listens there; a zygote that is busy takes connections later"),
        ),
        SpawnError::NoZygote { .. } => {
            (Kind::Machine, Some("`slowpath zygote serve --socket PATH --preload WHAT` starts one"))
        }
        SpawnError::Stranger { .. } => {
            (Kind::Usage, Some("--zygote-uid UID asks another user's zygote, who gets what the child is given"))
        }
        _ => (Kind::Machine, None),
    };
    Failure::from_error(kind, error).hint_if_any(hint)
}
