//! A cgroup that is made for launches, and removed after them.
//!
//! A note of it is written into the user's own state directory before it is made: what a killed process leaves is found there, and
//! nothing has to be looked for in all cgroups of the machine, of which a server has thousands.

use crate::error::{LabError, failed};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, OFlags, statat, unlinkat};
use rustix::io::Errno;
use slowpath_process::{Entry, ListedEntry, MountPoint, Owner, StateDirectory, open_beneath, trusted_directory};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Kind of the notes.
const KIND: &str = "cgroup";

/// Prefix of the cgroups' names.
const PREFIX: &str = "slowpath";

/// How long the last process of a launch may take to leave the group.
const PATIENCE: Duration = Duration::from_secs(2);

/// A cgroup of this process; removed when it is dropped.
#[derive(Debug)]
pub struct LaunchGroup {
    path: PathBuf,
    note: Entry,
}

impl LaunchGroup {
    /// Makes one below `parent`, under a name of its own.
    ///
    /// # Errors
    /// The kernel refuses, or the note cannot be written.
    pub fn create(parent: &Path) -> Result<Self, LabError> {
        Self::noted_in(&StateDirectory::of_this_user()?, parent)
    }

    fn noted_in(state: &StateDirectory, parent: &Path) -> Result<Self, LabError> {
        let owner = Owner::this_process().map_err(failed("read the start time of", Path::new("/proc/self")))?;
        let path = parent.join(owner.fresh_name(PREFIX));
        let note = state.new_file(KIND, path.as_os_str().as_bytes());
        let note = note.map_err(failed("note the cgroup in", state.path()))?;
        if let Err(error) = fs::create_dir(&path) {
            let _ = note.remove();
            return Err(failed("create the cgroup", &path)(error));
        }
        Ok(Self { path, note })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file by which a process joins.
    pub fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for LaunchGroup {
    fn drop(&mut self) {
        // Busy while a process of the launch is still being torn down; what stays is found by its note later.
        let end = Instant::now() + PATIENCE;
        let removed = loop {
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                removed => break removed,
            }
        };
        if removed.is_ok() || !self.path.exists() {
            let _ = self.note.remove();
        }
    }
}

/// A noted cgroup, of a living or a dead process.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) note: ListedEntry,
    pub(crate) path: PathBuf,
}

/// All that are noted.
pub(crate) fn noted(state: &StateDirectory) -> io::Result<Vec<Noted>> {
    let notes = state.entries(KIND)?.into_iter();
    Ok(notes
        .filter_map(|note| {
            let path = PathBuf::from(OsString::from_vec(note.read().ok()?));
            Some(Noted { note, path })
        })
        .collect())
}

impl Noted {
    /// Removes the group and its note. A group in which processes still live is not removed, and neither is one that another user
    /// made at its place.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn remove(&self) -> io::Result<()> {
        // A process that was killed between its note and its group noted nothing.
        if !self.path.as_os_str().is_empty() {
            remove_group(&self.path)?;
        }
        self.note.remove()
    }
}

fn remove_group(path: &Path) -> io::Result<()> {
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "it is the name of no cgroup of ours");
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(unknown()) };
    if name.to_str().and_then(|name| Owner::parse(name, PREFIX)).is_none() {
        return Err(unknown());
    }
    let mounts = MountPoint::all()?;
    let roots = mounts.iter().filter(|mount| mount.kind.starts_with("cgroup") && parent.starts_with(&mount.at));
    // Of mounts within each other the inner one; where there is none any more, the groups are gone from here.
    let Some(root) = roots.max_by_key(|mount| mount.at.as_os_str().len()) else { return Ok(()) };
    let place = parent.strip_prefix(&root.at).map_err(io::Error::other)?;
    let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
    let parent = match open_beneath(trusted_directory(&root.at)?, place, OFlags::RDONLY | OFlags::DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    remove_own(&parent, name)
}

fn remove_own(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match statat(parent.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        found if found?.st_uid != nix::unistd::geteuid().as_raw() => {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        _ => {}
    }
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounted_tests::needs_root;
    use crate::throttle::Hierarchy;
    use std::os::unix::fs::chown;

    #[test]
    fn a_cgroup_of_a_dead_process_is_found_by_its_note_and_another_users_stays() {
        needs_root!();
        let Some(hierarchy) = Hierarchy::find() else {
            println!("skipped: no hierarchy with a block controller");
            return;
        };
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let state = StateDirectory::at(&place.path().join("state")).unwrap();
        let [theirs, ours] = [(); 2].map(|()| LaunchGroup::noted_in(&state, hierarchy.root()).unwrap());
        chown(theirs.path(), Some(65534), Some(65534)).unwrap();
        let results: Vec<bool> = noted(&state).unwrap().iter().map(|noted| noted.remove().is_ok()).collect();
        let stayed = (theirs.path().exists(), ours.path().exists());
        drop((theirs, ours));
        assert_eq!((results, stayed), (vec![false, true], (true, false)));
        assert!(state.entries(KIND).unwrap().is_empty());
    }

    #[test]
    fn a_note_of_anything_else_removes_nothing() {
        needs_root!();
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let state = StateDirectory::at(&place.path().join("state")).unwrap();
        let precious = place.path().join("precious");
        fs::create_dir(&precious).unwrap();
        for path in [precious.as_path(), Path::new("/sys/fs/cgroup"), Path::new("relative")] {
            let note = state.new_file(KIND, path.as_os_str().as_bytes()).unwrap();
            assert!(noted(&state).unwrap()[0].remove().is_err(), "{path:?}");
            note.remove().unwrap();
        }
        // A name of ours where no cgroups are.
        let named = place.path().join("slowpath-4194305-1-1");
        fs::create_dir(&named).unwrap();
        state.new_file(KIND, named.as_os_str().as_bytes()).unwrap();
        noted(&state).unwrap()[0].remove().unwrap();
        assert!(named.exists() && precious.exists());
    }
}
