//! The directory of `-o`: made and written with the user's credentials, checked before a target is launched.

use crate::failure::{Failure, Kind};
use crate::unprivileged::{Work, as_user};
use slowpath_launch::Identity;
use slowpath_process::{new_directory, remove_empty_directory, trusted_directory};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, fchown};
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
            let is_root = nix::unistd::geteuid().is_root();
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
    let metadata = fs::symlink_metadata(path).map_err(|error| unusable(path, &error))?;
    if !metadata.is_dir() {
        return Err(Failure::new(Kind::Usage, format!("{} exists and is no directory", path.display())));
    }
    let mut entries = fs::read_dir(path).map_err(|error| unusable(path, &error))?;
    if entries.next().is_some() {
        return Err(Failure::new(Kind::Usage, format!("{} is not empty", path.display()))
            .hint("slowpath never overwrites a recording: name another directory with -o, or remove it"));
    }
    let probe = path.join(".writable");
    fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)).map_err(|error| unusable(path, &error))?;
    Ok(false)
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Usage, format!("the output directory {} cannot be used: {error}", path.display()))
        .hint("output is written as the target's user: choose a directory with -o that this user can reach and write")
}
