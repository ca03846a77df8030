//! `slowpath artifacts`: compiled and cached artifacts that a user cannot use.
//!
//! Here is decided for whom, and as whom files are looked at: as the caller, in a sandbox. Root looks with its right to read, which shows
//! what lies below directories that the user cannot enter; what the user may do is decided by `slowpath_artifacts`.

mod age;
mod guard;

use crate::arguments::{ArtifactsArguments, ArtifactsAuditArguments, ArtifactsCommand};
use crate::commands::{analyze, invoker, print_json};
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use nix::unistd::geteuid;
use slowpath_artifacts::access;
use slowpath_artifacts::audit::{Audited, Limits, audit, audit_beside, audit_listing, standard_places};
use slowpath_artifacts::gather::{Listing, MOST_BYTES, Machine};
use slowpath_budget::responsible::opens_missing;
use slowpath_diagnose::recorded_artifacts::named;
use slowpath_diagnose::running_artifacts::Running;
use slowpath_launch::{Identity, IdentityWarning};
use slowpath_report::terminal::{artifacts_audit, escape_terminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// From a root shell: the kernel's overflow user (`slowpath_process::NOBODY`), who owns nothing and is in no group.
const STRANGER: &str = "65534";

/// Runs the command.
pub fn run(arguments: &ArtifactsArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        ArtifactsCommand::Audit(arguments) => run_audit(arguments),
        ArtifactsCommand::Age(arguments) => age::run(arguments),
        ArtifactsCommand::Guard(arguments) => guard::run(arguments),
    }
}

fn run_audit(arguments: &ArtifactsAuditArguments) -> Result<ExitCode, Failure> {
    let audited = match (&arguments.listing, &arguments.recording, arguments.pid) {
        (Some(listing), ..) => of_listing(listing, asked_about(arguments.user.as_deref())?)?,
        (None, Some(recording), _) => of_recording(recording, arguments)?,
        (None, None, Some(pid)) => of_process(pid, arguments)?,
        (None, None, None) => of_paths(arguments)?,
    };
    if arguments.json {
        print_json(&audited);
    } else {
        print!("{}", artifacts_audit(&audited));
    }
    Ok(ExitCode::SUCCESS)
}

/// An audit of a listing, read as the invoker.
fn of_listing(listing: &Path, user: Identity) -> Result<Audited, Failure> {
    as_user(&invoker()?, &Work::reading("the audit"), || {
        let shown = escape_terminal(&listing.to_string_lossy());
        let text = foreign_file::read(listing, MOST_BYTES)
            .map_err(|error| Failure::new(Kind::Usage, format!("{shown} cannot be read: {error}")))?;
        let identity = after_login(&user);
        let found = audit_listing(&Listing::parse(&text), &identity);
        Ok(Audited::new(user.user, identity, found))
    })
}

/// An audit of what a recording names, as it is now.
fn of_recording(recording: &Path, arguments: &ArtifactsAuditArguments) -> Result<Audited, Failure> {
    let what = Work::reading("reading the recording");
    let recorded = as_user(&invoker()?, &what, || {
        let tables = analyze::open(recording)?;
        Ok(named(&tables, opens_missing(&tables.manifest)))
    })?;
    let user = match (&arguments.user, recorded.uid) {
        (Some(user), _) => asked_about(Some(user))?,
        // Everything is usable for root: what others would have been denied is what the recording does not show.
        (None, Some(0)) => {
            eprintln!(
                "slowpath: the recorded command ran as root: this shows what root hides, what another user cannot use of the same files"
            );
            asked_about(None)?
        }
        (None, Some(uid)) => asked_about(Some(&uid.to_string()))?,
        (None, None) => {
            let why = "the recording is of running processes, which need not have one user";
            return Err(Failure::new(Kind::Usage, why).hint("--as says for whom is decided"));
        }
    };
    let paths: Vec<PathBuf> = recorded.paths.iter().map(PathBuf::from).collect();
    let mut audited = of_machine(arguments, |machine, limits, step| {
        let identity = on(machine, after_login(&user));
        let found = audit(machine, &identity, &borrowed(&paths), limits, step);
        Ok(Audited::new(user.user, identity, found))
    })?;
    audited.unavailable.splice(0..0, recorded.unavailable);
    Ok(audited)
}

/// An audit of what a running process has mapped, and of what lies beside it.
fn of_process(pid: u32, arguments: &ArtifactsAuditArguments) -> Result<Audited, Failure> {
    let user = arguments.user.as_deref().map(|user| asked_about(Some(user))).transpose()?;
    let running = Running::read(pid)?;
    of_machine(arguments, |machine, limits, step| {
        let no_identity = || Failure::new(Kind::Machine, format!("/proc/{pid}/status does not say who the process is"));
        let (name, identity) = match user {
            Some(user) => (user.user.clone(), after_login(&user)),
            None => (format!("of process {pid}"), running.identity().ok_or_else(no_identity)?),
        };
        let identity = on(machine, identity);
        let found = audit_beside(machine, &identity, &borrowed(&running.files()), limits, step);
        Ok(Audited::new(name, identity, found))
    })
}

/// An audit of the paths of the command line, or of those where artifacts usually lie.
fn of_paths(arguments: &ArtifactsAuditArguments) -> Result<Audited, Failure> {
    let user = asked_about(arguments.user.as_deref())?;
    let named = absolute(&arguments.paths)?;
    of_machine(arguments, |machine, limits, step| {
        // Even whether these exist is looked up here: the directories belong to the user who is asked about.
        let paths = if named.is_empty() { standard_places(&user.home) } else { named };
        let identity = on(machine, after_login(&user));
        let found = audit(machine, &identity, &borrowed(&paths), limits, step);
        Ok(Audited::new(user.user, identity, found))
    })
}

/// An audit of this machine, with the rights of the caller to read.
fn of_machine(
    arguments: &ArtifactsAuditArguments,
    work: impl FnOnce(&Machine, Limits, &mut dyn FnMut(u64)) -> Result<Audited, Failure>,
) -> Result<Audited, Failure> {
    let limits = Limits { entries: arguments.max_entries, ..Limits::DEFAULT };
    let quiet = arguments.quiet || arguments.json;
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    as_user(&caller, &Work::reading("the audit"), || {
        let machine =
            Machine::read().map_err(|error| Failure::new(Kind::Machine, format!("/proc cannot be read: {error}")))?;
        let progress = Progress::new(quiet);
        let audited = work(&machine, limits, &mut |names| progress.step(format!("{names} names looked at")));
        progress.done();
        audited
    })
}

/// What a user is to the kernel after a login.
fn after_login(user: &Identity) -> access::Identity {
    access::Identity::new(user.uid, user.gid, user.groups.clone())
}

/// The identity on this machine, whose security module may confine every process.
fn on(machine: &Machine, identity: access::Identity) -> access::Identity {
    let confinement = identity.confinement.or_else(|| machine.confinement());
    access::Identity { confinement, ..identity }
}

fn borrowed(paths: &[PathBuf]) -> Vec<&Path> {
    paths.iter().map(PathBuf::as_path).collect()
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
