//! The directory of a lab: mount points, and a lock that says that its owner lives. It lies in root's own directory
//! ([`StateDirectory`]), so that nobody else can put anything there.
//!
//! ```text
//! /run/slowpath/lab-<pid>-<start>-<serial>/   locked (flock) while the lab lives
//!     size      bytes that the image takes, for `lab list`; the image itself has no name anywhere
//!     mount/    where a launch mounts the image; always empty on the host
//!     census/   where pages are counted: a device is not mounted twice at one place
//!     stash/N   where a launch keeps a mount below an overlaid tree until the overlay is made
//! ```
//!
//! In a launch the extra files of the image are bound over the whole of `/run/slowpath`: every user can reach them there,
//! and nobody what is below.

use crate::error::{LabError, failed};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, unlinkat};
use rustix::io::Errno;
use slowpath_process::{Entry, ListedEntry, StateDirectory, open_beneath};
use slowpath_tables::Bytes;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Kind of the entry.
pub(crate) const KIND: &str = "lab";

/// Where images lie unless the caller says otherwise: on disk (not `/tmp`, which may be memory).
pub const DEFAULT_BASE: &str = "/var/tmp";

const PARTS: [&str; 3] = ["mount", "census", "stash"];

/// A lab's own directory; removed on drop.
#[derive(Debug)]
pub(crate) struct LabDirectory {
    entry: Entry,
    path: PathBuf,
    everything: PathBuf,
}

impl LabDirectory {
    pub(crate) fn create(state: &StateDirectory) -> Result<Self, LabError> {
        let entry = state.new_directory(KIND).map_err(failed("create a lab directory in", state.path()))?;
        // From here on it is removed.
        let lab = Self { path: entry.path(), everything: state.path().to_owned(), entry };
        for part in PARTS {
            mkdirat(&lab.entry, part, Mode::RWXU)
                .map_err(|errno| failed("create a mount point in", &lab.path)(errno.into()))?;
        }
        Ok(lab)
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        self.path.join("mount")
    }

    pub(crate) fn census(&self) -> PathBuf {
        self.path.join("census")
    }

    /// Where a launch sees the extra files.
    pub(crate) fn extra(&self) -> &Path {
        &self.everything
    }

    /// A mount point for a directory or a file of the host.
    pub(crate) fn stash(&self, number: usize, for_directory: bool) -> Result<PathBuf, LabError> {
        let path = self.path.join("stash").join(number.to_string());
        let made = if for_directory { fs::create_dir(&path) } else { File::create_new(&path).map(drop) };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(failed("create", &path))?,
        }
        Ok(path)
    }

    /// Leaves the image's size for [`size_of`], since the image file itself has no name.
    pub(crate) fn note_size(&self, size: Bytes) -> Result<(), LabError> {
        let path = self.path.join("size");
        fs::write(&path, size.0.to_string()).map_err(failed("write", &path))
    }
}

impl Drop for LabDirectory {
    fn drop(&mut self) {
        let _ = empty(&self.entry).and_then(|()| self.entry.remove());
    }
}

/// Size of the image of a lab, when it was built.
pub(crate) fn size_of(lab: &ListedEntry) -> Option<Bytes> {
    let size = open_beneath(lab.open().ok()?, "size", OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let (size, mut text) = (File::from(size), String::new());
    if !size.metadata().ok()?.is_file() {
        return None;
    }
    // The largest number of bytes has 20 digits: one more is too long for a u64.
    size.take(21).read_to_string(&mut text).ok()?;
    text.parse().ok().map(Bytes)
}

/// Removes the directory of a lab. Names what a lab can hold instead of removing recursively: below a mount point that is,
/// against all expectation, mounted in this namespace, nothing is ever deleted.
pub(crate) fn remove(lab: &ListedEntry) -> io::Result<()> {
    match lab.open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        directory => empty(directory?).and_then(|()| lab.remove()),
    }
}

fn empty(directory: impl AsFd) -> io::Result<()> {
    ignore_missing(unlinkat(&directory, "size", AtFlags::empty()))?;
    match open_beneath(&directory, "stash", OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(stash) => empty_stash(&stash)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    for part in PARTS {
        ignore_missing(unlinkat(&directory, part, AtFlags::REMOVEDIR))?;
    }
    Ok(())
}

fn empty_stash(stash: &OwnedFd) -> io::Result<()> {
    for entry in Dir::read_from(stash)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match unlinkat(stash, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => ignore_missing(unlinkat(stash, name, AtFlags::REMOVEDIR))?,
            removed => ignore_missing(removed)?,
        }
    }
    Ok(())
}

fn ignore_missing(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) | Ok(()) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn state() -> (tempfile::TempDir, StateDirectory) {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let state = StateDirectory::at(&place.path().join("state")).unwrap();
        (place, state)
    }

    fn listed(state: &StateDirectory) -> Vec<ListedEntry> {
        state.entries(KIND).unwrap()
    }

    #[test]
    fn a_lab_directory_is_locked_while_it_lives_and_gone_after_drop() {
        let (_place, state) = state();
        let lab = LabDirectory::create(&state).unwrap();
        lab.stash(0, true).unwrap();
        lab.stash(1, false).unwrap();
        lab.note_size(Bytes(17)).unwrap();
        let found = listed(&state).pop().unwrap();
        assert!(found.is_alive());
        assert_eq!(size_of(&found), Some(Bytes(17)));
        assert_eq!(fs::metadata(&lab.path).unwrap().mode() & 0o7777, 0o700);
        drop(lab);
        assert!(listed(&state).is_empty());
    }

    #[test]
    fn removing_stops_at_what_no_lab_makes_and_follows_no_link() {
        let (place, state) = state();
        let lab = LabDirectory::create(&state).unwrap();
        let precious = lab.mount_point().join("precious");
        fs::write(&precious, "x").unwrap();
        assert!(remove(&listed(&state)[0]).is_err());
        assert!(precious.exists());
        fs::remove_file(precious).unwrap();
        let victim = place.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("0"), "x").unwrap();
        fs::create_dir_all(lab.path.join("stash")).unwrap();
        fs::remove_dir(lab.path.join("stash")).unwrap();
        symlink(&victim, lab.path.join("stash")).unwrap();
        assert!(remove(&listed(&state)[0]).is_err());
        assert!(victim.join("0").exists());
        fs::remove_file(lab.path.join("stash")).unwrap();
    }

    #[test]
    fn a_size_that_is_no_small_file_is_not_read() {
        let (_place, state) = state();
        let lab = LabDirectory::create(&state).unwrap();
        let (size, found) = (lab.path.join("size"), listed(&state).pop().unwrap());
        symlink("/dev/zero", &size).unwrap();
        assert_eq!(size_of(&found), None);
        fs::remove_file(&size).unwrap();
        nix::unistd::mkfifo(&size, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(size_of(&found), None);
        fs::remove_file(&size).unwrap();
        fs::write(&size, [b'1'; 1 << 20]).unwrap();
        assert_eq!(size_of(&found), None);
    }
}
