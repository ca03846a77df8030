//! `slowpath zygote serve`.

use super::preload::preload;
use crate::arguments::zygote::ZygoteServeArguments;
use crate::failure::{Failure, Kind, failed};
use crate::printing;
use slowpath_session::{foreign_file, unprivileged::become_user};
use slowpath_zygote::Policy;
use slowpath_zygote::listener::{Bound, inherited};
use slowpath_zygote::printed::Served;
use slowpath_zygote::supervisor::{SuperviseError, supervise};
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ZygoteServeArguments) -> Result<ExitCode, Failure> {
    for warning in become_user(arguments.user.as_deref())? {
        eprintln!("slowpath: warning: {warning}");
    }
    let preload = preload(&arguments.preload)?;
    let policy = policy_of(arguments)?;
    let (bound, activated) = socket(arguments)?;
    let listener = bound.as_ref().map(Bound::socket).or(activated.as_ref());
    let listener = listener.ok_or_else(|| Failure::new(Kind::Usage, "there is no socket to listen at"))?;
    let mut served = Served::default();
    let finish = supervise(listener, &preload, &policy, &mut |event| {
        if !arguments.quiet {
            eprintln!("slowpath: {event}");
        }
        served.note(event);
    });
    served.finish(finish.map_err(|error| supervise_failure(&error))?);
    if arguments.json {
        printing::json(&served);
    }
    Ok(ExitCode::SUCCESS)
}

fn supervise_failure(error: &SuperviseError) -> Failure {
    let kind = if matches!(error, SuperviseError::NeverReady(_)) { Kind::Target } else { Kind::Machine };
    Failure::from_error(kind, error)
}

fn policy_of(arguments: &ZygoteServeArguments) -> Result<Policy, Failure> {
    let policy = match &arguments.policy {
        None => Policy::default(),
        Some(path) => Policy::of_file(path, foreign_file::read)
            .map_err(|why| Failure::new(Kind::Usage, format!("policy {} cannot be used: {why}", path.display())))?,
    };
    Ok(policy.overridden(arguments.idle, arguments.spares))
}

/// The socket at a path, or the one that was handed over.
fn socket(arguments: &ZygoteServeArguments) -> Result<(Option<Bound>, Option<OwnedFd>), Failure> {
    match &arguments.socket {
        Some(path) => {
            let path = std::path::absolute(path).map_err(failed(Kind::Usage))?;
            Ok((Some(Bound::at(&path).map_err(failed(Kind::Machine))?), None))
        }
        None => {
            let socket = inherited().map_err(failed(Kind::Usage))?;
            let none = || {
                Failure::new(Kind::Usage, "no socket is handed over (LISTEN_FDS)")
                    .hint("with systemd: a unit .socket with ListenSequentialPacket=PATH; else --socket PATH")
            };
            Ok((None, Some(socket.ok_or_else(none)?)))
        }
    }
}
