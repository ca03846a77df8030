//! What a command sees that is to find artifacts unreadable, stale or missing, as elsewhere: files of this machine, with less.
//!
//! The file of states is read as the invoker, the files that it names are looked at as the caller, both in sandboxes. What the command sees is never more than without: permissions only go, and what is the user's own is seen as nobody's.

use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use slowpath_artifacts::access::{AclFact, Component, LookupEnd};
use slowpath_artifacts::field_state::{Aged, FieldArtifact, FieldState, MOST_BYTES};
use slowpath_artifacts::gather::Machine;
use slowpath_launch::{
    ContextStep, EndPolicy, Exit, Identity, Launcher, LookedAt, MOST_COPIED_BYTES, MountStep, Permissions, SeenFile,
    StdioPolicy,
};
use slowpath_process::{MountPoint, NOBODY};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::foreign_file;
use slowpath_session::interrupt::{self, Interruptible};
use slowpath_session::target::{Target, invoker, launch_failure, launcher};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::missing::declared;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// How much newer than it is a source is seen, in seconds.
const NEWER: i64 = 1;

/// What the command is to see.
#[derive(Serialize, Deserialize)]
pub struct Seen {
    /// The files.
    pub files: Vec<SeenFile>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Whether this process may give a command mounts of its own.
///
/// # Errors
/// It is not root's.
pub fn require_root() -> Result<(), Failure> {
    if geteuid().is_root() {
        return Ok(());
    }
    let gap = declared::OWN_MOUNTS
        .because("mounts of a command's own need root", "run it with sudo; the command still runs as you");
    Err(Failure::unavailable("run a command that sees other artifacts", &[gap]))
}

/// Launches the target in mounts in which it finds what the file of states says; `say` gets what the user should know of them.
///
/// # Errors
/// The file is wrong, nothing that it names is here, the command could not be launched, or ctrl-C.
pub fn launch(target: &Target, states: &Path, say: &dyn Fn(&str)) -> Result<Option<Exit>, Failure> {
    let state = read(states)?;
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    let uid = target.identity.uid;
    let seen = as_user(&caller, &Work::reading("looking at the artifacts"), || Seen::of(&state, uid))?;
    seen.notes.iter().for_each(|line| say(line));
    if seen.files.is_empty() {
        let why = "nothing that the file names is here: the command would see no difference";
        return Err(Failure::new(Kind::Usage, why));
    }
    if uid == 0 {
        say("root reads what is unreadable for others: --user names the user of the command");
    }
    let mounts = seen.files.into_iter().map(|file| MountStep::Seen(Box::new(file))).collect();
    let (mut spec, _fresh) = target.seeing(mounts).spec(EndPolicy::KillTree, StdioPolicy::Inherit)?;
    if uid != 0 {
        // A set-user-id program would take what is not there for the machine's own state.
        spec.context.push(ContextStep::NoNewPrivileges);
    }
    let outcome = launcher().launch(&spec, &mut Interruptible).map_err(|error| launch_failure(&error))?;
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    Ok(outcome.exit)
}

fn read(path: &Path) -> Result<FieldState, Failure> {
    as_user(&invoker()?, &Work::reading("reading the file of states"), || {
        let wrong = |why: String| Failure::new(Kind::Usage, format!("{}: {why}", path.display()));
        let bytes =
            foreign_file::read(path, MOST_BYTES).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        FieldState::parse(&bytes)
            .map_err(|error| wrong(error.to_string()).hint("docs/artifacts.md shows the form of the file"))
    })
}

/// A file that is here.
struct Here {
    facts: Component,
    was: LookedAt,
    file: File,
}

impl Seen {
    /// The states, of what is on this machine, for this user. Files are looked at as the caller.
    ///
    /// # Errors
    /// A file cannot be seen as the state says, or /proc cannot be read.
    pub fn of(state: &FieldState, uid: u32) -> Result<Self, Failure> {
        let unread = |error: std::io::Error| Failure::new(Kind::Machine, format!("/proc cannot be read: {error}"));
        let looked = Looked {
            machine: Machine::read().map_err(unread)?,
            mounts: MountPoint::all().map_err(unread)?,
            uid,
            files: BTreeMap::new(),
            bytes: 0,
        };
        looked.all(&state.artifacts)
    }
}

struct Looked {
    machine: Machine,
    mounts: Vec<MountPoint>,
    uid: u32,
    files: BTreeMap<PathBuf, SeenFile>,
    bytes: u64,
}

fn wrong(path: &Path, why: &str) -> Failure {
    Failure::new(Kind::Usage, format!("{} {why}", path.display()))
}

impl Looked {
    fn all(mut self, artifacts: &[FieldArtifact]) -> Result<Seen, Failure> {
        let mut notes = Vec::new();
        for artifact in artifacts {
            let path = &artifact.path;
            let done = match &artifact.state {
                Aged::Unreadable { mode } => self.unreadable(path, *mode)?,
                Aged::Stale { made_from } => self.stale(made_from)?,
                Aged::Missing => self.missing(path)?,
            };
            if !done {
                notes.push(format!("{} is not here and stays so", path.display()));
            }
        }
        if self.bytes > MOST_COPIED_BYTES {
            let why = format!("the files have {} MiB, and the command would have a copy of them", self.bytes >> 20);
            return Err(Failure::new(Kind::Usage, why));
        }
        // By path: directories before what lies below them.
        Ok(Seen { files: self.files.into_values().collect(), notes })
    }

    /// `None` where nothing is there.
    fn here(&self, path: &Path) -> Result<Option<Here>, Failure> {
        let Ok(found) = self.machine.look_up(path) else { return Ok(None) };
        let (LookupEnd::File(facts), Some((_, file))) = (found.lookup.end, found.file) else {
            return Err(wrong(path, "cannot be looked at"));
        };
        let was = LookedAt::of(&file).map_err(failed(Kind::Machine))?;
        if !was.is_directory() && !was.is_regular() {
            return Err(wrong(path, "is neither a file nor a directory"));
        }
        Ok(Some(Here { facts, was, file: File::from(file) }))
    }

    /// The file as it is, to be changed; one that two states concern is one.
    fn file(&mut self, here: &Here) -> Result<&mut SeenFile, Failure> {
        let path = &here.facts.path;
        let is_below = |mount: &&MountPoint| mount.at.starts_with(path) && mount.at != *path;
        if here.was.is_directory()
            && let Some(mount) = self.mounts.iter().find(is_below)
        {
            let why = format!("has a mount below it ({}), which the command would not see", mount.at.display());
            return Err(wrong(path, &why));
        }
        let acl = match &here.facts.acl {
            AclFact::None => None,
            AclFact::Entries(acl) => Some(acl.attribute()),
            AclFact::Unread(why) => {
                return Err(wrong(path, &format!("has an access control list that cannot be read: {why}")));
            }
        };
        if here.was.is_regular() && !self.files.contains_key(path) {
            self.bytes = self.bytes.saturating_add(here.file.metadata().map_err(failed(Kind::Machine))?.len());
        }
        let LookedAt { uid, gid, mode, .. } = here.was;
        Ok(self.files.entry(path.clone()).or_insert_with(|| SeenFile {
            path: path.clone(),
            was: here.was,
            permissions: Permissions { uid, gid, mode: mode & 0o7777, acl },
            modified: None,
            without: Vec::new(),
            only: Vec::new(),
        }))
    }

    fn unreadable(&mut self, path: &Path, mode: Option<u32>) -> Result<bool, Failure> {
        let Some(here) = self.here(path)? else { return Ok(false) };
        let uid = self.uid;
        let (has, has_list) = (here.was.mode & 0o777, here.facts.acl != AclFact::None);
        // With a list the bits of the group are its mask, and others may be denied by name.
        let most = if has_list { has & 0o700 } else { has };
        let mode = mode.unwrap_or(most & 0o700);
        if mode & !most != 0 {
            let why = format!(
                "has mode {most:04o} at most without its access control list: mode {mode:04o} would allow more"
            );
            return Err(wrong(
                path,
                if has_list { &why } else { "is more closed: an aged file allows no more than it does" },
            ));
        }
        let file = self.file(&here)?;
        file.permissions.mode = here.was.mode & 0o7000 | mode;
        file.permissions.acl = None;
        // A file of the user's own is readable for him whatever others may; in the field it is another user's.
        if uid != 0 && file.permissions.uid == uid {
            file.permissions.uid = if uid == NOBODY { NOBODY - 1 } else { NOBODY };
        }
        Ok(true)
    }

    fn stale(&mut self, made_from: &Path) -> Result<bool, Failure> {
        let Some(here) = self.here(made_from)? else { return Ok(false) };
        let modified = here.file.metadata().and_then(|found| found.modified()).map_err(failed(Kind::Machine))?;
        let seconds = modified.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.file(&here)?.modified = Some(i64::try_from(seconds).unwrap_or(0).saturating_add(NEWER));
        Ok(true)
    }

    fn missing(&mut self, path: &Path) -> Result<bool, Failure> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
        let Some(here) = self.here(parent)? else { return Ok(false) };
        // A link may be missing too: what it leads to stays.
        if !here.was.is_directory() || fstatat(&here.file, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_err() {
            return Ok(false);
        }
        let file = self.file(&here)?;
        if !file.without.iter().any(|known| known == name) {
            file.without.push(name.to_owned());
        }
        Ok(true)
    }
}
