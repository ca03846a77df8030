//! The directory of `-o`: made and written with the user's credentials, checked before a target is launched.

use crate::failure::{Failure, Kind};
use crate::unprivileged::{Work, as_user};
use slowpath_launch::Identity;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::{Path, PathBuf};

/// Makes `path` or takes it when it is an empty directory, and returns its absolute name.
///
/// When the user may not make it but root was asked to write there, root makes it and hands it over.
///
/// # Errors
/// It exists and is not empty, or cannot be made, entered or written by the user.
pub fn prepare(path: &Path, user: &Identity) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| unusable(path, &error))?;
    // Its place is that of the new directory.
    let what = Work::writing("preparing the output directory", absolute.as_path());
    let attempt = as_user(user, &what, || make(&absolute));
    if attempt.is_err() && nix::unistd::geteuid().is_root() && fs::symlink_metadata(&absolute).is_err() {
        let made = fs::DirBuilder::new().mode(0o700).create(&absolute);
        made.and_then(|()| lchown(&absolute, Some(user.uid), Some(user.gid)))
            .map_err(|error| unusable(path, &error))?;
        return as_user(user, &what, || make(&absolute)).map(|()| absolute);
    }
    attempt.map(|()| absolute)
}

/// Runs `work`, which prepares `path`; where it fails with nothing written there, a directory that was not there before
/// is removed.
///
/// # Errors
/// Those of `work`.
pub fn unless_empty<T>(path: &Path, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let existed = fs::symlink_metadata(path).is_ok();
    work().inspect_err(|_| {
        if !existed {
            // Removes empty directories only; there may be none.
            let _ = fs::remove_dir(path);
        }
    })
}

fn make(path: &Path) -> Result<(), Failure> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(|error| unusable(path, &error)),
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
    fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Usage, format!("the output directory {} cannot be used: {error}", path.display()))
        .hint("output is written as the target's user: choose a directory with -o that this user can reach and write")
}
