//! The directory of a lab: mount points, and a lock that says that its owner lives.
//!
//! ```text
//! slowpath-lab-<pid>-<start>-<serial>/   0755, locked (flock) while the lab lives
//!     image/    0700  the image file, unlinked as soon as it is open; `size` for `lab list`
//!     mount/    0700  where a launch mounts the image; always empty on the host
//!     census/   0700  where pages are counted: a device is not mounted twice at one place
//!     extra/    0755  where a launch sees the extra files; always empty on the host
//!     stash/N         where a launch keeps a mount below an overlaid tree until the overlay is made
//! ```

use crate::error::{LabError, failed};
use crate::owner::Owner;
use nix::fcntl::{Flock, FlockArg};
use slowpath_tables::Bytes;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Prefix of every lab directory.
pub(crate) const PREFIX: &str = "slowpath-lab";

/// Where labs live unless the caller says otherwise: on disk (not `/tmp`, which may be memory), kept across reboots
/// so that leftovers can be found.
pub const DEFAULT_BASE: &str = "/var/tmp";

/// A lab's own directory; removed on drop.
#[derive(Debug)]
pub(crate) struct LabDirectory {
    path: PathBuf,
    _lock: Flock<File>,
}

impl LabDirectory {
    pub(crate) fn create(base: &Path) -> Result<Self, LabError> {
        let base = fs::canonicalize(base).map_err(failed("find the directory", base))?;
        refuse_unsafe(&base)?;
        let owner = Owner::this_process().map_err(failed("read the start time of", Path::new("/proc/self")))?;
        let path = loop {
            let path = base.join(owner.fresh_name(PREFIX));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                // Left by a killed process of the same pid and tick, or planted: never use it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("create the lab directory", &path)(error)),
            }
        };
        match Self::furnish(&path) {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(error) => {
                let _ = remove(&path);
                Err(error)
            }
        }
    }

    fn furnish(path: &Path) -> Result<Flock<File>, LabError> {
        // Waits: whoever lists labs at this moment tries the lock for an instant.
        let lock = lock(path, FlockArg::LockExclusive).map_err(failed("lock the lab directory", path))?;
        for (name, mode) in [("image", 0o700), ("mount", 0o700), ("census", 0o700), ("extra", 0o755), ("stash", 0o700)]
        {
            make(&path.join(name), mode)?;
        }
        set_mode(path, 0o755)?;
        Ok(lock)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        self.path.join("mount")
    }

    pub(crate) fn census(&self) -> PathBuf {
        self.path.join("census")
    }

    pub(crate) fn extra(&self) -> PathBuf {
        self.path.join("extra")
    }

    pub(crate) fn image_file(&self) -> PathBuf {
        self.path.join("image/image")
    }

    /// A mount point for a directory or a file of the host.
    pub(crate) fn stash(&self, number: usize, for_directory: bool) -> Result<PathBuf, LabError> {
        let path = self.path.join("stash").join(number.to_string());
        if !path.exists() {
            if for_directory {
                make(&path, 0o700)?;
            } else {
                File::create(&path).map_err(failed("create", &path))?;
            }
        }
        Ok(path)
    }

    /// Leaves the image's size for [`size_of`], since the image file itself has no name.
    pub(crate) fn note_size(&self, size: Bytes) -> Result<(), LabError> {
        let path = self.path.join("image/size");
        fs::write(&path, size.0.to_string()).map_err(failed("write", &path))
    }
}

impl Drop for LabDirectory {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

/// Size of the image of the lab in `path`, when it was built.
pub(crate) fn size_of(path: &Path) -> Option<Bytes> {
    fs::read_to_string(path.join("image/size")).ok()?.parse().ok().map(Bytes)
}

/// Whether a living process holds the directory's lock, in whatever pid namespace it is.
pub(crate) fn is_locked(path: &Path) -> bool {
    matches!(lock(path, FlockArg::LockExclusiveNonblock), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Removes a lab directory. Names what a lab can hold instead of removing recursively: below a mount point that is,
/// against all expectation, mounted in this namespace, nothing is ever deleted.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    for file in ["image/size", "image/image"] {
        ignore_missing(fs::remove_file(path.join(file)))?;
    }
    match fs::read_dir(path.join("stash")) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry?.path();
                ignore_missing(if entry.is_dir() { fs::remove_dir(&entry) } else { fs::remove_file(&entry) })?;
            }
        }
        Err(error) => ignore_missing(Err(error))?,
    }
    for directory in ["image", "mount", "census", "extra", "stash", ""] {
        ignore_missing(fs::remove_dir(path.join(directory)))?;
    }
    Ok(())
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn lock(path: &Path, how: FlockArg) -> io::Result<Flock<File>> {
    Flock::lock(File::open(path)?, how).map_err(|(_, errno)| errno.into())
}

fn make(path: &Path, mode: u32) -> Result<(), LabError> {
    DirBuilder::new().mode(mode).create(path).map_err(failed("create the directory", path))?;
    set_mode(path, mode)
}

/// The mode exactly, whatever the umask.
fn set_mode(path: &Path, mode: u32) -> Result<(), LabError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed("set the mode of", path))
}

fn refuse_unsafe(base: &Path) -> Result<(), LabError> {
    let mut part = PathBuf::new();
    for component in base.components() {
        part.push(component);
        let metadata = fs::symlink_metadata(&part).map_err(failed("look at", &part))?;
        let (mode, sticky) = (metadata.mode(), metadata.mode() & 0o1000 != 0);
        let ours = metadata.uid() == 0 || metadata.uid() == nix::unistd::geteuid().as_raw();
        if !metadata.is_dir() || !ours || (mode & 0o022 != 0 && !sticky) {
            return Err(LabError::UnsafeDirectory(part));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> tempfile::TempDir {
        tempfile::tempdir_in("/var/tmp").unwrap()
    }

    #[test]
    fn a_lab_directory_is_locked_while_it_lives_and_gone_after_drop() {
        let base = base();
        let lab = LabDirectory::create(base.path()).unwrap();
        lab.stash(0, true).unwrap();
        lab.stash(1, false).unwrap();
        lab.note_size(Bytes(17)).unwrap();
        assert!(is_locked(lab.path()));
        assert_eq!(size_of(lab.path()), Some(Bytes(17)));
        assert_eq!(fs::metadata(lab.image_file().parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
        drop(lab);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_base_that_others_can_write_without_the_sticky_bit_is_refused() {
        let base = base();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(LabDirectory::create(base.path()), Err(LabError::UnsafeDirectory(_))));
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        LabDirectory::create(base.path()).unwrap();
    }

    #[test]
    fn removing_stops_at_what_no_lab_makes() {
        let base = base();
        let lab = LabDirectory::create(base.path()).unwrap();
        let precious = lab.mount_point().join("precious");
        fs::write(&precious, "x").unwrap();
        assert!(remove(lab.path()).is_err());
        assert!(precious.exists());
        fs::remove_file(precious).unwrap();
    }
}
