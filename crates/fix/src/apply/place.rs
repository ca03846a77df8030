//! A file that is written for a fix: found without following a link, replaced whole by one rename.
//!
//! As root every part of the path must be one that nobody else can replace; for anybody, no symbolic link is followed. Everything
//! is done with the descriptor of the file's directory.

use super::error::ApplyError;
use super::journal::FileContent;
use crate::Word;
use nix::unistd::geteuid;
use rustix::fs::{AtFlags, Mode, OFlags, flistxattr, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use slowpath_process::{plain_directory, trusted_directory};
use std::ffi::OsString;
use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest file that is changed.
const MOST: u64 = 64 << 20;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum There {
    /// Nothing.
    Nothing,
    /// A file.
    File(FileContent),
    /// What is not changed, and why not.
    Else(String),
}

impl There {
    /// The file, where there is one.
    pub fn file(&self) -> Option<&FileContent> {
        match self {
            Self::File(file) => Some(file),
            _ => None,
        }
    }
}

/// An absolute path without `.`, `..` and links that are followed.
pub fn absolute(path: &Path) -> Result<PathBuf, ApplyError> {
    let absolute = std::path::absolute(path).map_err(|error| ApplyError::unusable(path, error))?;
    let is_plain = absolute.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !is_plain || absolute.file_name().is_none() {
        return Err(ApplyError::NotPlain(path.to_owned()));
    }
    Ok(absolute)
}

/// Opens a directory: as root one that nobody else can replace, else one behind no symbolic link.
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    let found = if geteuid().is_root() { trusted_directory(path) } else { plain_directory(path) }?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(&found, ".", flags, Mode::empty())?)
}

/// The directories of a path that are not there, outermost first.
pub fn missing(path: &Path) -> Result<Vec<PathBuf>, ApplyError> {
    let mut missing = Vec::new();
    for part in path.ancestors() {
        match directory(part) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(part.to_owned()),
            Err(error) => return Err(ApplyError::unusable(part, error)),
        }
    }
    missing.reverse();
    Ok(missing)
}

/// Makes a directory where there is none.
pub fn make_directory(path: &Path, mode: u32) -> Result<(), ApplyError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let made = directory(parent).and_then(|parent| {
        match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        File::from(parent).sync_all()
    });
    made.map_err(|error| ApplyError::unusable(path, error))
}

/// Removes a directory where it is empty.
pub fn remove_directory(path: &Path) {
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && let Ok(parent) = directory(parent)
    {
        let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
    }
}

/// A file's place: its directory, opened, and its name there.
pub struct FilePlace {
    path: PathBuf,
    directory: File,
    name: OsString,
}

impl FilePlace {
    /// Opens the directory of `path`.
    ///
    /// # Errors
    /// What [`directory`] says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok(Self { path: path.to_owned(), directory: directory(parent)?.into(), name: name.to_owned() })
    }

    /// What stands there.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn look(&self) -> io::Result<There> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(There::Nothing),
            Err(Errno::LOOP) => return Ok(There::Else("is a symbolic link".to_owned())),
            Err(errno) => return Err(errno.into()),
        };
        let there = file.metadata()?;
        let no = |why: &str| Ok(There::Else(why.to_owned()));
        if !there.is_file() {
            return no("is not a regular file");
        }
        if there.nlink() > 1 {
            return no("has several hard links, which replacing it would break");
        }
        if there.uid() != geteuid().as_raw() {
            return no("belongs to another user");
        }
        if there.len() > MOST {
            return no("is larger than 64 MiB");
        }
        if has_attributes(&file) {
            return no("has an access control list or other extended attributes, which would be lost");
        }
        let mut content = Vec::new();
        file.take(MOST + 1).read_to_end(&mut content)?;
        Ok(There::File(FileContent {
            content: content.into(),
            mode: there.mode() & 0o7777,
            uid: there.uid(),
            gid: there.gid(),
            modified: u32::try_from(there.mtime_nsec()).ok().map(|ns| (there.mtime(), ns)),
        }))
    }

    /// Writes a file in place of what is there, if that is still `expected`: under `temporary` first, then by one rename.
    ///
    /// # Errors
    /// It cannot be written, or something else is there.
    pub fn replace(
        &self,
        temporary: &str,
        wanted: &FileContent,
        expected: Option<&FileContent>,
    ) -> Result<(), ApplyError> {
        self.remove_temporary(temporary);
        let written = self.write(temporary, wanted);
        let done = written.and_then(|()| {
            self.require(expected)?;
            renameat(&self.directory, temporary, &self.directory, &self.name)?;
            self.directory.sync_all()
        });
        done.map_err(|error| {
            self.remove_temporary(temporary);
            ApplyError::unusable(&self.path, error)
        })
    }

    /// Removes the file, if it is still `expected`.
    ///
    /// # Errors
    /// It cannot be removed, or something else is there.
    pub fn remove(&self, expected: &FileContent) -> Result<(), ApplyError> {
        let removed = self.require(Some(expected)).and_then(|()| {
            unlinkat(&self.directory, &self.name, AtFlags::empty())?;
            self.directory.sync_all()
        });
        removed.map_err(|error| ApplyError::unusable(&self.path, error))
    }

    /// Removes what a killed slowpath left of writing: its name is in the record, and it is ours.
    pub fn remove_temporary(&self, temporary: &str) {
        let _ = unlinkat(&self.directory, temporary, AtFlags::empty());
    }

    fn require(&self, expected: Option<&FileContent>) -> io::Result<()> {
        let there = self.look()?;
        let is_same = match (&there, expected) {
            (There::Nothing, None) => true,
            (There::File(there), Some(expected)) => there.is_same(expected),
            _ => false,
        };
        if is_same { Ok(()) } else { Err(io::Error::other("somebody changes it at this moment")) }
    }

    fn write(&self, temporary: &str, wanted: &FileContent) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.directory, temporary, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(wanted.content.as_bytes())?;
        let there = file.metadata()?;
        if (there.uid(), there.gid()) != (wanted.uid, wanted.gid) {
            fchown(&file, Some(wanted.uid), Some(wanted.gid))?;
        }
        file.set_permissions(Permissions::from_mode(wanted.mode))?;
        if let Some(modified) = wanted.modified.and_then(time) {
            file.set_times(FileTimes::new().set_modified(modified))?;
        }
        file.sync_all()
    }
}

fn time((seconds, ns): (i64, u32)) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    at?.checked_add(Duration::from_nanos(ns.into()))
}

/// Whether a file has attributes that a new one would not get by itself, as a label of SELinux.
fn has_attributes(file: &File) -> bool {
    let mut names = [0u8; 4096];
    match flistxattr(file, &mut names[..]) {
        Ok(length) => {
            let all = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
            all.into_iter().any(|name| name != b"security.selinux")
        }
        // Most file systems that have none say so.
        Err(errno) => errno == Errno::RANGE,
    }
}

/// The path of a word of a record.
pub fn path_of(word: &Word) -> PathBuf {
    word.to_os_string().into()
}

/// A name beside a file for what is being written, which nobody else has.
pub fn temporary_name(number: usize) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!(".slowpath-{}-{now:x}-{number}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn file_of(place: &FilePlace) -> FileContent {
        place.look().unwrap().file().unwrap().clone()
    }

    #[test]
    fn a_file_is_replaced_and_restored_with_its_mode_and_times() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, b"old\xff").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let target = FilePlace::open(&path).unwrap();
        let before = file_of(&target);
        let after = FileContent { content: "new".into(), modified: None, ..before.clone() };
        target.replace(".t", &after, Some(&before)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(target.replace(".t", &after, Some(&before)).unwrap_err().to_string().contains("somebody changes it"));
        target.replace(".t", &before, Some(&after)).unwrap();
        assert_eq!(file_of(&target), before);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        target.remove(&before).unwrap();
        assert_eq!(target.look().unwrap(), There::Nothing);
    }

    #[test]
    fn links_are_neither_followed_nor_replaced() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/file"), "x").unwrap();
        symlink("real", at("link")).unwrap();
        symlink("file", at("real/alias")).unwrap();
        fs::hard_link(at("real/file"), at("real/twin")).unwrap();
        let refused = FilePlace::open(&at("link/file")).err().unwrap();
        assert!(ApplyError::unusable(at("link"), refused).to_string().contains("cannot be used"));
        for name in ["real/alias", "real/twin"] {
            let there = FilePlace::open(&at(name)).unwrap().look().unwrap();
            assert!(matches!(there, There::Else(_)), "{name}: {there:?}");
        }
        assert!(absolute(Path::new("/tmp/../x")).is_err() && absolute(Path::new("/")).is_err());
        assert_eq!(missing(&at("real/a/b")).unwrap(), [at("real/a"), at("real/a/b")]);
    }
}
