//! The directory of `-o`: made and written with the user's credentials, checked before a target is launched.

use crate::failure::{Failure, Kind};
use crate::unprivileged::{Work, as_user};
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, getegid, geteuid, unlinkat};
use slowpath_launch::Identity;
use slowpath_process::{new_directory, remove_empty_directory, trusted_directory};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A directory that this process made, by whom it is removed again when nothing was written there.
enum Made {
    ByUser { path: PathBuf, user: Box<Identity> },
    ByRoot { parent: OwnedFd, name: OsString },
}

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

fn remember(made: Made) {
    MADE.lock().unwrap_or_else(PoisonError::into_inner).push(made);
}

/// Makes `path` or takes it when it is an empty directory, and returns its absolute name.
///
/// When the user may not make it but root was asked to write there, root makes it and hands it over: only where nobody but
/// root can change a part of the path, and never one that was there before.
///
/// # Errors
/// It exists and is not empty, or cannot be made, entered or written by the user.
pub fn prepare(path: &Path, user: &Identity) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| unusable(path, &error))?;
    // Its place is that of the new directory.
    let what = Work::writing("preparing the output directory", absolute.as_path());
    match as_user(user, &what, || make(&absolute)) {
        Ok(true) => remember(Made::ByUser { path: absolute.clone(), user: Box::new(user.clone()) }),
        Ok(false) => {}
        Err(refused) => {
            let is_root = geteuid().is_root();
            let made =
                if is_root { make_as_root(&absolute, user) } else { Err(io::ErrorKind::PermissionDenied.into()) };
            remember(made.map_err(|_| refused)?);
            as_user(user, &what, || make(&absolute))?;
        }
    }
    Ok(absolute)
}

/// The same for a name that nobody asked for: `stem`, or with the first number behind it that is free (`stem-2`, ...).
///
/// # Errors
/// As [`prepare`].
pub fn prepare_numbered(stem: &Path, user: &Identity) -> Result<PathBuf, Failure> {
    let stem = std::path::absolute(stem).map_err(|error| unusable(stem, &error))?;
    let numbered = |number: u32| {
        let mut name = stem.clone().into_os_string();
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free = as_user(user, &Work::reading("looking for a free name"), || {
        let is_free = |number: &u32| fs::symlink_metadata(numbered(*number)).is_err();
        Ok((1..=LAST_NUMBER).find(is_free).unwrap_or(LAST_NUMBER))
    })?;
    prepare(&numbered(free), user)
}

/// Names that are looked at for one that is free.
const LAST_NUMBER: u32 = 999;

fn make_as_root(path: &Path, user: &Identity) -> io::Result<Made> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = trusted_directory(parent)?;
    let directory = new_directory(&parent, name)?;
    fchown(&directory, Some(user.uid), Some(user.gid))?;
    // Only root can put another one there: the parent was trusted.
    Ok(Made::ByRoot { parent, name: name.to_owned() })
}

/// Runs `work`, which prepares a directory; where it fails with nothing written there, a directory that was not there
/// before is removed.
///
/// # Errors
/// Those of `work`.
pub fn unless_empty<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    work().inspect_err(|_| remove_empty())
}

/// Removes what was made and is empty: there is nothing to write.
pub fn remove_empty() {
    let made = std::mem::take(&mut *MADE.lock().unwrap_or_else(PoisonError::into_inner));
    for directory in made.into_iter().rev() {
        directory.remove_if_empty();
    }
}

impl Made {
    /// Removes empty directories only; what the user could change is removed with the user's rights.
    fn remove_if_empty(self) {
        match self {
            Self::ByUser { path, user } => {
                // An entry of its parent goes, so that is the place to write to.
                let what = Work::writing_beneath("removing an empty directory", path.parent().unwrap_or(&path));
                let _ = as_user(&user, &what, || {
                    let _ = fs::remove_dir(&path);
                    Ok(())
                });
            }
            Self::ByRoot { parent, name } => {
                let _ = remove_empty_directory(&parent, &name);
            }
        }
    }
}

/// Whether it was made now.
fn make(path: &Path) -> Result<bool, Failure> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(|()| true).map_err(|error| unusable(path, &error)),
    }
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let directory = match File::options().read(true).custom_flags(flags).open(path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
            return Err(Failure::new(Kind::Usage, format!("{} exists and is no directory", path.display())));
        }
        opened => opened.map_err(|error| unusable(path, &error))?,
    };
    let mut entries =
        fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd())).map_err(|error| unusable(path, &error))?;
    if entries.next().is_some() {
        return Err(Failure::new(Kind::Usage, format!("{} is not empty", path.display()))
            .hint("slowpath never overwrites a recording: name another directory with -o, or remove it"));
    }
    let metadata = directory.metadata().map_err(|error| unusable(path, &error))?;
    let is_anybodys =
        metadata.mode() & 0o002 != 0 || metadata.mode() & 0o020 != 0 && metadata.gid() != getegid().as_raw();
    if metadata.uid() != geteuid().as_raw() || is_anybodys {
        let text = format!("the output directory {} belongs to, or can be written by, another user", path.display());
        return Err(Failure::new(Kind::Usage, text)
            .hint("name one that is not there yet: others could change what is written to this one"));
    }
    let create = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    openat(&directory, PROBE, create, Mode::S_IRUSR | Mode::S_IWUSR)
        .and_then(|_| unlinkat(&directory, PROBE, UnlinkatFlags::NoRemoveDir))
        .map_err(|error| unusable(path, &error.into()))?;
    Ok(false)
}

/// A file that is made to see whether one can be, and removed at once.
const PROBE: &str = ".writable";

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Usage, format!("the output directory {} cannot be used: {error}", path.display()))
        .hint("output is written as the target's user: choose a directory with -o that this user can reach and write")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn an_empty_directory_is_taken_where_nobody_else_can_write() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        assert!(make(&path).unwrap(), "made");
        assert!(!make(&path).unwrap(), "taken");
        assert!(fs::read_dir(&path).unwrap().next().is_none(), "the probe is gone");
        let refused = |mode: u32| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            make(&path).is_err()
        };
        assert_eq!([0o777, 0o1777, 0o775, 0o700].map(refused), [true, true, false, false]);
        symlink(&path, place.path().join("link")).unwrap();
        assert!(make(&place.path().join("link")).is_err());
        if !geteuid().is_root() {
            println!("skipped: only root can give a directory away");
            return;
        }
        for (user, group, mode) in [(65534, 0, 0o755), (0, 65534, 0o775)] {
            chown(&path, Some(user), Some(group)).unwrap();
            assert!(refused(mode), "{user}:{group} {mode:o}");
        }
    }
}
