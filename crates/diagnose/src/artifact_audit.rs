//! Audits of artifacts: of a listing, of what a recording names, of what a running process has mapped, and of paths.
//!
//! Owns for whom is decided, and as whom files are looked at: as the caller, in a sandbox. Root looks with its right to read, which shows
//! what lies below directories that the user cannot enter; what the user may do is decided by `slowpath_artifacts`.

use crate::recorded_artifacts::named;
use crate::running_artifacts::Running;
use nix::unistd::geteuid;
use slowpath_artifacts::access;
use slowpath_artifacts::audit::{Audited, Limits, audit as audit_paths, audit_beside, audit_listing, standard_places};
use slowpath_artifacts::gather::{Listing, MOST_BYTES, Machine};
use slowpath_launch::{Identity, IdentityWarning};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, foreign_file, open_recording};
use std::path::{Path, PathBuf};

/// From a root shell: the kernel's overflow user (`slowpath_process::NOBODY`), who owns nothing and is in no group.
const STRANGER: &str = "65534";

/// What is audited.
#[derive(Clone, Debug)]
pub enum AuditSubject {
    /// A listing of a file system.
    Listing(PathBuf),
    /// What a recording names, as it is now.
    Recording(PathBuf),
    /// What a process has mapped, and what lies beside it.
    Process(u32),
    /// Paths; none: those where artifacts usually lie.
    Paths(Vec<PathBuf>),
}

/// An audit that is asked for.
#[derive(Clone, Debug)]
pub struct AuditWanted {
    /// Of what.
    pub subject: AuditSubject,
    /// For whom: a name or an id; none: for the subject's own user, or the invoker.
    pub user: Option<String>,
    /// Names that are looked at, at most.
    pub most_entries: u64,
}

/// Where an audit says what goes on, and what it decides for whom.
struct Messages<'a> {
    progress: &'a dyn Progress,
    say: &'a dyn Fn(&str),
}

/// Audits; `say` gets what the user should know of for whom is decided.
///
/// # Errors
/// There is no such user, file, recording or process, or the machine cannot be read.
pub fn audit(wanted: &AuditWanted, progress: &dyn Progress, say: &dyn Fn(&str)) -> Result<Audited, Failure> {
    let messages = &Messages { progress, say };
    match &wanted.subject {
        AuditSubject::Listing(listing) => of_listing(listing, asked_about(wanted.user.as_deref(), messages)?),
        AuditSubject::Recording(recording) => of_recording(recording, wanted, messages),
        AuditSubject::Process(pid) => of_process(*pid, wanted, messages),
        AuditSubject::Paths(paths) => of_paths(paths, wanted, messages),
    }
}

/// An audit of a listing, read as the invoker.
fn of_listing(listing: &Path, user: Identity) -> Result<Audited, Failure> {
    as_user(&invoker()?, &Work::reading("the audit"), || {
        let shown = listing.display();
        let text = foreign_file::read(listing, MOST_BYTES)
            .map_err(|error| Failure::new(Kind::Usage, format!("{shown} cannot be read: {error}")))?;
        let identity = after_login(&user);
        let found = audit_listing(&Listing::parse(&text), &identity);
        Ok(Audited::new(user.user, identity, found))
    })
}

/// An audit of what a recording names, as it is now.
fn of_recording(recording: &Path, wanted: &AuditWanted, messages: &Messages<'_>) -> Result<Audited, Failure> {
    let what = Work::reading("reading the recording");
    let recorded = as_user(&invoker()?, &what, || {
        let tables = open_recording::open(recording, |text| messages.progress.warn(text))?;
        Ok(named(&tables))
    })?;
    let user = match (&wanted.user, recorded.uid) {
        (Some(user), _) => asked_about(Some(user), messages)?,
        // Everything is usable for root: what others would have been denied is what the recording does not show.
        (None, Some(0)) => {
            (messages.say)(
                "the recorded command ran as root: this shows what root hides, what another user cannot use of the same files",
            );
            asked_about(None, messages)?
        }
        (None, Some(uid)) => asked_about(Some(&uid.to_string()), messages)?,
        (None, None) => {
            let why = "the recording is of running processes, which need not have one user";
            return Err(Failure::new(Kind::Usage, why).hint("--as says for whom is decided"));
        }
    };
    let paths: Vec<PathBuf> = recorded.paths.iter().map(PathBuf::from).collect();
    let mut audited = of_machine(wanted, messages, |machine, limits, step| {
        let identity = on(machine, after_login(&user));
        let found = audit_paths(machine, &identity, &borrowed(&paths), limits, step);
        Ok(Audited::new(user.user, identity, found))
    })?;
    audited.unavailable.splice(0..0, recorded.unavailable);
    Ok(audited)
}

/// An audit of what a running process has mapped, and of what lies beside it.
fn of_process(pid: u32, wanted: &AuditWanted, messages: &Messages<'_>) -> Result<Audited, Failure> {
    let user = wanted.user.as_deref().map(|user| asked_about(Some(user), messages)).transpose()?;
    let running = Running::read(pid)?;
    of_machine(wanted, messages, |machine, limits, step| {
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
fn of_paths(paths: &[PathBuf], wanted: &AuditWanted, messages: &Messages<'_>) -> Result<Audited, Failure> {
    let user = asked_about(wanted.user.as_deref(), messages)?;
    let named = absolute(paths)?;
    of_machine(wanted, messages, |machine, limits, step| {
        // Even whether these exist is looked up here: the directories belong to the user who is asked about.
        let paths = if named.is_empty() { standard_places(&user.home) } else { named };
        let identity = on(machine, after_login(&user));
        let found = audit_paths(machine, &identity, &borrowed(&paths), limits, step);
        Ok(Audited::new(user.user, identity, found))
    })
}

/// An audit of this machine, with the rights of the caller to read.
fn of_machine(
    wanted: &AuditWanted,
    messages: &Messages<'_>,
    work: impl FnOnce(&Machine, Limits, &mut dyn FnMut(u64)) -> Result<Audited, Failure>,
) -> Result<Audited, Failure> {
    let limits = Limits { entries: wanted.most_entries, ..Limits::DEFAULT };
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    as_user(&caller, &Work::reading("the audit"), || {
        let machine =
            Machine::read().map_err(|error| Failure::new(Kind::Machine, format!("/proc cannot be read: {error}")))?;
        let audited = work(&machine, limits, &mut |names| messages.progress.step(&format!("{names} names looked at")));
        messages.progress.done();
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
fn asked_about(user: Option<&str>, messages: &Messages<'_>) -> Result<Identity, Failure> {
    let (identity, warnings) = match user {
        Some(name) => Identity::known_as(name).map_err(failed(Kind::Usage))?,
        None => {
            let own = invoker()?;
            if own.uid != 0 || !geteuid().is_root() {
                return Ok(own);
            }
            (messages.say)(&format!(
                "root may read everything, so nothing is unreadable for it: this is decided for user {STRANGER}, without groups; \
                 --as names another"
            ));
            (Identity::known_as(STRANGER).map_err(failed(Kind::Usage))?.0, Vec::new())
        }
    };
    if warnings.iter().any(|warning| matches!(warning, IdentityWarning::UnknownUser { .. })) {
        let (uid, gid) = (identity.uid, identity.gid);
        (messages.say)(&format!("no user has the id {uid}: decided for group {gid} and no other groups"));
    }
    if identity.uid == 0 {
        (messages.say)("root may read everything: what others cannot read is not shown; --as names another user");
    }
    Ok(identity)
}

/// The paths, from the root on: what a process of the user looks up is not below the directory of this one.
fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let absolute = |path: &PathBuf| {
        std::path::absolute(path).map_err(|error| {
            let shown = path.display();
            Failure::new(Kind::Usage, format!("{shown} is no path: {error}"))
        })
    };
    paths.iter().map(absolute).collect()
}
