//! What labs and launches of killed processes left behind, found and removed. Kernel objects (mounts, loop devices, the
//! image's space) are never left: they hang on descriptors. A directory of empty mount points, a cgroup, and a controller
//! that is switched on can be.
//!
//! Directories and controllers are found in root's own directory only ([`StateDirectory`]). Cgroups are found by name in the
//! hierarchies, where users may have groups of their own: only those that belong to us are ours. What versions before left
//! under guessable names in `/var/tmp` and `/tmp` is not looked at: anybody can make such names.

use crate::throttle;
use crate::{controller, directory};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags, statat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;
use slowpath_process::{Found, MountPoint, Owner, StateDirectory, open_beneath, trusted_directory};
use slowpath_tables::Bytes;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Levels of cgroups that are looked through below a root: those of a user's service in a container have some eight.
const DEEPEST: usize = 16;

/// What kind of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A lab's directory.
    Directory,
    /// A cgroup with a throttle, or with the limits of a launch.
    Cgroup,
    /// A controller that is switched on below a cgroup.
    Controller,
}

/// A lab's trace on this machine, of a living or a dead owner.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What it is.
    pub kind: Kind,
    /// Directory or cgroup.
    pub path: PathBuf,
    /// Pid of the owner.
    pub pid: u32,
    /// Whether the owner lives (in any pid namespace, for directories).
    pub owner_alive: bool,
    /// Bytes that the image takes on disk while its owner lives; `None` for cgroups and unfinished images.
    pub size: Option<Bytes>,
    handle: Handle,
}

/// By what it is removed.
#[derive(Clone, Debug)]
enum Handle {
    Directory(Found),
    Note(Found),
    Group { root: PathBuf, parent: PathBuf, name: OsString },
}

/// All labs on this machine, those of living owners included (`lab list`). What cannot be looked at is left out.
pub fn list() -> Vec<Trace> {
    let state = StateDirectory::existing();
    let mut traces = state.as_ref().map(in_state).unwrap_or_default();
    traces.extend(groups());
    traces
}

fn in_state(state: &StateDirectory) -> Vec<Trace> {
    let labs = state.entries(directory::KIND).unwrap_or_default().into_iter().map(|found| {
        let owner_alive = found.is_alive();
        let size = owner_alive.then(|| directory::size_of(&found)).flatten();
        let (path, pid) = (found.path(), found.owner.pid);
        Trace { kind: Kind::Directory, path, pid, owner_alive, size, handle: Handle::Directory(found) }
    });
    let notes = controller::left(state).unwrap_or_default().into_iter().map(|(note, path)| {
        let (pid, handle) = (note.owner.pid, Handle::Note(note));
        Trace { kind: Kind::Controller, path, pid, owner_alive: false, size: None, handle }
    });
    labs.chain(notes).collect()
}

/// Cgroups of all hierarchies: of throttles, and those that were made for launches below the caller's own group.
fn groups() -> Vec<Trace> {
    let mounts = MountPoint::all().unwrap_or_default();
    let roots = mounts.into_iter().filter(|mount| mount.kind.starts_with("cgroup"));
    let mut traces: Vec<Trace> = roots.flat_map(|root| groups_below(&root.at)).collect();
    // Several mounts can show one hierarchy.
    traces.sort_by(|one, other| one.path.cmp(&other.path));
    traces.dedup_by(|one, other| one.path == other.path);
    traces
}

fn groups_below(root: &Path) -> Vec<Trace> {
    let Ok(top) = trusted_directory(root) else { return Vec::new() };
    let (mut traces, mut open) = (Vec::new(), vec![(PathBuf::from("."), 0)]);
    while let Some((place, depth)) = open.pop() {
        let Ok(directory) = open_group(&top, &place) else { continue };
        for name in groups_in(&directory) {
            let owner = name.to_str().and_then(|name| Owner::parse(name, throttle::PREFIX));
            if let Some(owner) = owner.filter(|_| is_ours(&directory, &name)) {
                let path: PathBuf = root.components().chain(place.join(&name).components()).collect();
                let handle = Handle::Group { root: root.to_owned(), parent: place.clone(), name: name.clone() };
                let (pid, owner_alive) = (owner.pid, owner.is_alive());
                traces.push(Trace { kind: Kind::Cgroup, path, pid, owner_alive, size: None, handle });
            }
            if depth < DEEPEST {
                open.push((place.join(name), depth + 1));
            }
        }
    }
    traces
}

fn open_group(top: &OwnedFd, place: &Path) -> io::Result<OwnedFd> {
    open_beneath(top, place, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn groups_in(directory: &OwnedFd) -> Vec<OsString> {
    let Ok(entries) = rustix::fs::Dir::read_from(directory) else { return Vec::new() };
    let groups = entries.flatten().filter(|entry| entry.file_type() == FileType::Directory);
    let names = groups.map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
    names.filter(|name| name != "." && name != "..").collect()
}

/// Whether a group of that name was made by this user: others who may make groups there make them as themselves.
fn is_ours(parent: impl AsFd, name: &OsString) -> bool {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| found.st_uid == nix::unistd::geteuid().as_raw())
}

fn remove_group(root: &Path, parent: &Path, name: &OsString) -> io::Result<()> {
    let parent = open_group(&trusted_directory(root)?, parent)?;
    if !is_ours(&parent, name) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl Trace {
    /// Removes what a dead owner left; a cgroup in which processes still live is not removed.
    ///
    /// # Errors
    /// The kernel refuses.
    fn remove(&self) -> io::Result<()> {
        match &self.handle {
            Handle::Directory(found) => directory::remove(found),
            Handle::Note(note) => controller::clean(&StateDirectory::existing().map_err(io::Error::other)?, note),
            Handle::Group { root, parent, name } => remove_group(root, parent, name),
        }
    }
}

/// Removes cgroups of dead owners, as far as it may, and switches off what they switched on. Every command that makes some
/// begins with that.
pub fn clean_groups() {
    for trace in list().iter().filter(|trace| !trace.owner_alive && trace.kind != Kind::Directory) {
        let _ = trace.remove();
    }
}

/// Removes what dead owners left. Each trace comes with the result of its removal, and one that fails keeps no other from
/// being removed. Groups go before the controllers that they need.
pub fn clean() -> Vec<(Trace, io::Result<()>)> {
    let mut dead: Vec<Trace> = list().into_iter().filter(|trace| !trace.owner_alive).collect();
    dead.sort_by_key(|trace| trace.kind == Kind::Controller);
    dead.into_iter().map(|trace| (trace.clone(), trace.remove())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounted_tests::needs_root;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn names_that_anybody_can_make_are_not_even_looked_at() {
        needs_root!();
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::write(place.path().join("precious"), "x").unwrap();
        // No process ever has this pid: PID_MAX_LIMIT is 2^22 (include/linux/threads.h).
        let planted = Path::new("/var/tmp/slowpath-lab-4194305-1-0");
        fs::create_dir(planted).unwrap();
        chown(planted, Some(65534), Some(65534)).unwrap();
        symlink(place.path(), planted.join("stash")).unwrap();
        let cleaned = clean();
        let stayed = (place.path().join("precious").exists(), planted.exists());
        let _ = fs::remove_file(planted.join("stash"));
        let _ = fs::remove_dir(planted);
        assert_eq!(stayed, (true, true));
        assert!(cleaned.iter().all(|(trace, _)| !trace.path.starts_with("/var/tmp")));
    }

    #[test]
    fn a_cgroup_of_another_user_stays_whatever_its_name() {
        needs_root!();
        let Some(hierarchy) = throttle::Hierarchy::find() else {
            println!("skipped: no hierarchy with a block controller");
            return;
        };
        let (theirs, ours) =
            (hierarchy.root().join("slowpath-4194305-1-0"), hierarchy.root().join("slowpath-4194305-1-1"));
        for path in [&theirs, &ours] {
            fs::create_dir(path).unwrap();
        }
        chown(&theirs, Some(65534), Some(65534)).unwrap();
        clean();
        let stayed = (theirs.exists(), ours.exists());
        for path in [&theirs, &ours] {
            let _ = fs::remove_dir(path);
        }
        assert_eq!(stayed, (true, false));
    }

    #[test]
    fn one_trace_that_cannot_be_removed_keeps_no_other_from_being_removed() {
        needs_root!();
        let state = StateDirectory::of_this_user().unwrap();
        let me = Owner::this_process().unwrap();
        let dead = Owner { start: me.start + 1, ..me };
        let (full, empty) = (dead.fresh_name(directory::KIND), dead.fresh_name(directory::KIND));
        let (full, empty) = (state.path().join(full), state.path().join(empty));
        fs::create_dir_all(full.join("mount/precious")).unwrap();
        fs::create_dir_all(empty.join("mount")).unwrap();
        let results = clean();
        let of = |path: &Path| results.iter().find(|(trace, _)| trace.path == path).map(|(_, result)| result.is_ok());
        let outcome = (of(&full), of(&empty), empty.exists());
        fs::remove_dir_all(&full).unwrap();
        assert_eq!(outcome, (Some(false), Some(true), false));
    }
}
