//! What labs and launches of killed processes left behind, found and removed. Kernel objects (mounts, loop devices, the
//! image's space) are never left: they hang on descriptors. A directory of empty mount points, a cgroup, and a controller
//! that is switched on can be.
//!
//! All are found in the user's own directory only ([`StateDirectory`]): directories lie there, and cgroups and controllers are noted
//! there. What versions before left under guessable names in `/var/tmp`, `/tmp` and among the cgroups is not looked at: anybody can
//! make such names, and a server has thousands of cgroups.

use crate::{controller, directory, launch_group};
use serde::Serialize;
use slowpath_process::{ListedEntry, StateDirectory};
use slowpath_tables::Bytes;
use std::io;
use std::path::PathBuf;

/// What kind of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
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
    pub kind: TraceKind,
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
    Directory(ListedEntry),
    Note(ListedEntry),
    Group(launch_group::Noted),
}

/// All labs on this machine, those of living owners included (`lab list`). What cannot be looked at is left out.
pub fn list() -> Vec<Trace> {
    let state = StateDirectory::existing();
    state.as_ref().map(in_state).unwrap_or_default()
}

fn in_state(state: &StateDirectory) -> Vec<Trace> {
    let labs = state.entries(directory::KIND).unwrap_or_default().into_iter().map(|found| {
        let owner_alive = found.is_alive();
        let size = owner_alive.then(|| directory::size_of(&found)).flatten();
        let (path, pid) = (found.path(), found.owner.pid);
        Trace { kind: TraceKind::Directory, path, pid, owner_alive, size, handle: Handle::Directory(found) }
    });
    let notes = controller::left(state).unwrap_or_default().into_iter().map(|(note, path)| {
        let (pid, handle) = (note.owner.pid, Handle::Note(note));
        Trace { kind: TraceKind::Controller, path, pid, owner_alive: false, size: None, handle }
    });
    let groups = launch_group::noted(state).unwrap_or_default().into_iter().map(|noted| {
        let (path, pid, owner_alive) = (noted.path.clone(), noted.note.owner.pid, noted.note.is_alive());
        Trace { kind: TraceKind::Cgroup, path, pid, owner_alive, size: None, handle: Handle::Group(noted) }
    });
    // Groups go before the controllers that they need.
    labs.chain(groups).chain(notes).collect()
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
            Handle::Group(noted) => noted.remove(),
        }
    }
}

/// Removes cgroups of dead owners, as far as it may, and switches off what they switched on. Every command that makes some
/// begins with that.
pub fn clean_groups() {
    for trace in list().iter().filter(|trace| !trace.owner_alive && trace.kind != TraceKind::Directory) {
        let _ = trace.remove();
    }
}

/// Removes what dead owners left. Each trace comes with the result of its removal, and one that fails keeps no other from
/// being removed.
pub fn clean() -> Vec<(Trace, io::Result<()>)> {
    list().into_iter().filter(|trace| !trace.owner_alive).map(|trace| (trace.clone(), trace.remove())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounted_tests::needs_root;
    use slowpath_process::Owner;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::path::Path;

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
