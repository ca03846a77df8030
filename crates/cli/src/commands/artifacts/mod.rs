//! `slowpath artifacts`: compiled and cached artifacts that a user cannot use.
//!
//! Here is decided for whom, and as whom files are looked at: as the caller, in a sandbox. Root looks with its right to read, which shows
//! what lies below directories that the user cannot enter; what the user may do is decided by `slowpath_artifacts`.

pub mod printed;
mod recorded;
mod table;

use crate::arguments::{ArtifactsArguments, ArtifactsAuditArguments, ArtifactsCommand};
use crate::commands::{invoker, print_json};
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use nix::unistd::geteuid;
use printed::Audited;
use slowpath_artifacts::access;
use slowpath_artifacts::audit::{Limits, audit, audit_listing, standard_places};
use slowpath_artifacts::gather::{Listing, MOST_BYTES, Machine};
use slowpath_launch::{Identity, IdentityWarning};
use slowpath_report::terminal::escape_terminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// From a root shell: the kernel's overflow user (`slowpath_process::NOBODY`), who owns nothing and is in no group.
const STRANGER: &str = "65534";

/// Runs the command.
pub fn run(arguments: &ArtifactsArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        ArtifactsCommand::Audit(arguments) => run_audit(arguments),
    }
}

fn run_audit(arguments: &ArtifactsAuditArguments) -> Result<ExitCode, Failure> {
    let audited = match (&arguments.listing, &arguments.recording) {
        (Some(listing), _) => of_listing(listing, asked_about(arguments.user.as_deref())?)?,
        (None, Some(recording)) => of_recording(recording, arguments)?,
        (None, None) => of_paths(arguments)?,
    };
    if arguments.json {
        print_json(&audited);
    } else {
        print!("{}", table::text(&audited));
    }
    Ok(ExitCode::SUCCESS)
}

/// An audit of a listing, read as the invoker.
fn of_listing(listing: &Path, user: Identity) -> Result<Audited, Failure> {
    as_user(&invoker()?, &Work::reading("the audit"), || {
        let shown = escape_terminal(&listing.to_string_lossy());
        let text = foreign_file::read(listing, MOST_BYTES)
            .map_err(|error| Failure::new(Kind::Usage, format!("{shown} cannot be read: {error}")))?;
        let identity = access::Identity::new(user.uid, user.gid, user.groups.clone());
        Ok(Audited::new(&user, audit_listing(&Listing::parse(&text), &identity)))
    })
}

/// An audit of what a recording names, as it is now.
fn of_recording(recording: &Path, arguments: &ArtifactsAuditArguments) -> Result<Audited, Failure> {
    let recorded = recorded::read(recording)?;
    let user = match (&arguments.user, recorded.uid) {
        (Some(user), _) => asked_about(Some(user))?,
        (None, Some(uid)) => asked_about(Some(&uid.to_string()))?,
        (None, None) => {
            let why = "the recording is of running processes, which need not have one user";
            return Err(Failure::new(Kind::Usage, why).hint("--as says for whom is decided"));
        }
    };
    let paths = recorded.paths.iter().map(PathBuf::from).collect();
    let mut audited = of_machine(arguments, user, Paths::Named(paths))?;
    audited.unavailable.splice(0..0, recorded.unavailable);
    Ok(audited)
}

/// An audit of the paths of the command line, or of those where artifacts usually lie.
fn of_paths(arguments: &ArtifactsAuditArguments) -> Result<Audited, Failure> {
    let user = asked_about(arguments.user.as_deref())?;
    let paths = if arguments.paths.is_empty() { Paths::Standard } else { Paths::Named(absolute(&arguments.paths)?) };
    of_machine(arguments, user, paths)
}

/// What is audited.
enum Paths {
    /// Absolute paths.
    Named(Vec<PathBuf>),
    /// Where programs of a distribution keep artifacts, and the user's caches.
    Standard,
}

/// An audit of this machine.
fn of_machine(arguments: &ArtifactsAuditArguments, user: Identity, paths: Paths) -> Result<Audited, Failure> {
    let (limits, quiet) =
        (Limits { entries: arguments.max_entries, ..Limits::DEFAULT }, arguments.quiet || arguments.json);
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    as_user(&caller, &Work::reading("the audit"), || {
        let machine =
            Machine::read().map_err(|error| Failure::new(Kind::Machine, format!("/proc cannot be read: {error}")))?;
        let identity = access::Identity {
            confinement: machine.confinement(),
            ..access::Identity::new(user.uid, user.gid, user.groups.clone())
        };
        let progress = Progress::new(quiet);
        // Even whether these exist is looked up here: the directories belong to the user who is asked about.
        let paths = match paths {
            Paths::Named(paths) => paths,
            Paths::Standard => standard_places(&user.home),
        };
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let found = audit(&machine, &identity, &paths, limits, &mut |names| {
            progress.step(format!("{names} names looked at"));
        });
        progress.done();
        Ok(Audited::new(&user, found))
    })
}

/// For whom is decided, with a word where that is not plain.
fn asked_about(user: Option<&str>) -> Result<Identity, Failure> {
    let (identity, warnings) = match user {
        Some(name) => Identity::known_as(name).map_err(failed(Kind::Usage))?,
        None => {
            let own = invoker()?;
            if own.uid != 0 || !geteuid().is_root() {
                return Ok(own);
            }
            eprintln!(
                "slowpath: root may read everything, so nothing is unreadable for it: this is decided for user {STRANGER}, without groups; \
                 --as names another"
            );
            (Identity::known_as(STRANGER).map_err(failed(Kind::Usage))?.0, Vec::new())
        }
    };
    if warnings.iter().any(|warning| matches!(warning, IdentityWarning::UnknownUser { .. })) {
        let (uid, gid) = (identity.uid, identity.gid);
        eprintln!("slowpath: no user has the id {uid}: decided for group {gid} and no other groups");
    }
    if identity.uid == 0 {
        eprintln!("slowpath: root may read everything: what others cannot read is not shown; --as names another user");
    }
    Ok(identity)
}

/// The paths, from the root on: what a process of the user looks up is not below the directory of this one.
fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let absolute = |path: &PathBuf| {
        std::path::absolute(path).map_err(|error| {
            let shown = escape_terminal(&path.to_string_lossy());
            Failure::new(Kind::Usage, format!("{shown} is no path: {error}"))
        })
    };
    paths.iter().map(absolute).collect()
}
