//! `slowpath zygote serve`.

use super::preloaded;
use crate::arguments::ZygoteServeArguments;
use crate::commands::print_json;
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_launch::Identity;
use slowpath_process::drop_to;
use slowpath_zygote::Policy;
use slowpath_zygote::listener::{Bound, inherited};
use slowpath_zygote::policy;
use slowpath_zygote::supervisor::{Event, Finish, SuperviseError, supervise};
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// What `slowpath zygote serve --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Served {
    /// `slowpath-zygote-serve/1`.
    schema: &'static str,
    /// Why it ended: `stopped` or `idle`.
    ended: &'static str,
    /// From the start of what is preloaded until it could fork, in ms, of each start.
    starts_ms: Vec<f64>,
    /// How often it ended without being told to, and was started again.
    crashes: u32,
    /// How often it was started anew, and why.
    renewals: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &ZygoteServeArguments) -> Result<ExitCode, Failure> {
    become_user(arguments.user.as_deref())?;
    let preload = preloaded::of(&arguments.preload)?;
    let policy = policy_of(arguments)?;
    let (bound, activated) = socket(arguments)?;
    let listener = bound.as_ref().map(Bound::socket).or(activated.as_ref());
    let listener = listener.ok_or_else(|| Failure::new(Kind::Usage, "there is no socket to listen at"))?;
    let mut served = Served {
        schema: "slowpath-zygote-serve/1",
        ended: "stopped",
        starts_ms: Vec::new(),
        crashes: 0,
        renewals: Vec::new(),
    };
    let finish = supervise(listener, &preload, &policy, &mut |event| {
        if !arguments.quiet {
            eprintln!("slowpath: {}", words(event));
        }
        served.note(event);
    });
    if finish.map_err(|error| supervise_failure(&error))? == Finish::Idle {
        served.ended = "idle";
    }
    if arguments.json {
        print_json(&served);
    }
    Ok(ExitCode::SUCCESS)
}

impl Served {
    fn note(&mut self, event: &Event) {
        match event {
            Event::Ready { after, .. } => self.starts_ms.push(after.as_secs_f64() * 1e3),
            Event::Crashed { .. } => self.crashes += 1,
            Event::Renewed { why } => self.renewals.push(why.clone()),
        }
    }
}

fn words(event: &Event) -> String {
    match event {
        Event::Ready { pid, after } => format!("ready: process {pid} preloaded in {:.0} ms", after.as_secs_f64() * 1e3),
        Event::Crashed { ending, again_in } => {
            format!(
                "the zygote {ending}; its children ended with it, and it starts again in {} ms",
                again_in.as_millis()
            )
        }
        Event::Renewed { why } => format!("preloading again: {why}; children that are there stay with the old zygote"),
    }
}

fn supervise_failure(error: &SuperviseError) -> Failure {
    let kind = if matches!(error, SuperviseError::NeverReady(_)) { Kind::Target } else { Kind::Machine };
    Failure::from_error(kind, error)
}

/// Takes on the identity for good, before anything of the user's is opened.
fn become_user(user: Option<&str>) -> Result<(), Failure> {
    let variables: Vec<_> = std::env::vars_os().collect();
    let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let (identity, warnings) = Identity::for_invocation(user, borrowed).map_err(failed(Kind::Usage))?;
    if nix::unistd::geteuid().is_root() && identity.uid != 0 {
        drop_to(&identity.credentials()).map_err(failed(Kind::Machine))?;
        for (name, value) in identity.environment(variables) {
            // SAFETY: this thread is the only one: no other was started yet.
            unsafe { std::env::set_var(name, value) };
        }
        return Ok(());
    }
    if identity.uid == 0 && user.is_none() {
        for warning in warnings {
            eprintln!("slowpath: warning: {warning}");
        }
    }
    Ok(())
}

fn policy_of(arguments: &ZygoteServeArguments) -> Result<Policy, Failure> {
    let mut policy = match &arguments.policy {
        None => Policy::default(),
        Some(path) => {
            let wrong =
                |why: String| Failure::new(Kind::Usage, format!("policy {} cannot be used: {why}", path.display()));
            if nix::unistd::geteuid().is_root() {
                let found = std::fs::canonicalize(path).map_err(|error| wrong(error.to_string()))?;
                preloaded::trusted(&found).map_err(|error| wrong(error.to_string()))?;
            }
            let bytes = foreign_file::read(path, policy::MOST_BYTES).map_err(|error| wrong(error.to_string()))?;
            let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
            Policy::parse(&text).map_err(|error| wrong(error.to_string()))?
        }
    };
    policy.idle = arguments.idle.or(policy.idle);
    if let Some(spares) = arguments.spares {
        policy.spares = spares;
        policy.most_spares = policy.most_spares.max(spares);
    }
    Ok(policy)
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
