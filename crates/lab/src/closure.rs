//! The file closure of a command: which host files an image will hold. Owns the choice and its reasons; leaves the
//! copying to `fill`, and finding the paths (an earlier recording) to the caller.

use crate::filesystem::{FilesystemClass, class_of};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, OFlags, Stat, fstat, readlinkat};
use serde::Serialize;
use slowpath_process::{FileIdentity, MountTable, NotOpened};
use slowpath_tables::{Bytes, FileKey};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A host file that an image will hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosureFile {
    /// Canonical host path: no component is a symbolic link.
    pub path: PathBuf,
    /// Device and inode on the host. Several paths with one key are hard links and stay so in the image.
    pub key: FileKey,
    /// Size when the closure was made.
    pub size: Bytes,
}

/// Why a path is not in the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "why", content = "detail")]
pub enum SkipReason {
    /// The path is relative, so no host file is meant by it (`memfd:x`, `[vdso]`, `pipe:[7]`).
    NotAPath,
    /// There is no such file (any more).
    Vanished,
    /// A directory, device, socket or pipe.
    NotRegular(&'static str),
    /// On a file system that lives in memory or is made up by the kernel.
    Pseudo(&'static str),
    /// On a network file system or a user-space one, where root could wait for ever.
    Network(String),
    /// Could not be opened, read or written into the image.
    Unreadable(String),
    /// Size or modification time kept changing while it was copied.
    Changed,
    /// Another file, or a symbolic link, has come to stand there since the closure was made.
    Replaced,
    /// A list of who may read it could not be copied, so that more users could have read the copy.
    AccessList,
}

/// A path that is not in the image, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The path as given.
    pub path: PathBuf,
    /// Why it was skipped.
    pub reason: SkipReason,
}

/// Regular files of local file systems, each once, and what was left out.
///
/// Symbolic links are resolved: the image holds the file at its canonical path, and the link itself is read from the
/// host, since whatever an image lacks falls through to the host.
#[derive(Clone, Debug, Default)]
pub struct Closure {
    files: BTreeMap<PathBuf, ClosureFile>,
    skipped: Vec<Skipped>,
}

impl Closure {
    /// Looks at every path once; a path that cannot be used is reported in [`Closure::skipped`].
    pub fn from_paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut closure = Self::default();
        let mut classes = HashMap::new();
        let mut table = MountTable::read();
        let mut seen = std::collections::HashSet::new();
        for path in paths {
            let path = path.as_ref();
            if !seen.insert(path.to_path_buf()) {
                continue;
            }
            let looked = match &mut table {
                Ok(table) => look_at(path, table, &mut classes),
                Err(error) => Err(unusable(error)),
            };
            match looked {
                Ok(file) => {
                    closure.files.insert(file.path.clone(), file);
                }
                Err(reason) => closure.skipped.push(Skipped { path: path.to_path_buf(), reason }),
            }
        }
        closure
    }

    /// The files, sorted by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &ClosureFile> {
        self.files.values()
    }

    /// What was left out.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Sum of the sizes, hard links counted once.
    pub fn total_size(&self) -> Bytes {
        let by_key: HashMap<FileKey, Bytes> = self.files().map(|file| (file.key, file.size)).collect();
        by_key.into_values().sum()
    }
}

impl<P: AsRef<Path>> FromIterator<P> for Closure {
    fn from_iter<I: IntoIterator<Item = P>>(paths: I) -> Self {
        Self::from_paths(paths)
    }
}

fn look_at(
    path: &Path,
    table: &mut MountTable,
    classes: &mut HashMap<u64, FilesystemClass>,
) -> Result<ClosureFile, SkipReason> {
    if !path.is_absolute() {
        return Err(SkipReason::NotAPath);
    }
    let (path, file) = resolve(path, table)?;
    let found = fstat(&file).map_err(|errno| unusable(&errno.into()))?;
    if let Some(kind) = irregular(&found) {
        return Err(SkipReason::NotRegular(kind));
    }
    let class = match classes.get(&found.st_dev) {
        Some(class) => *class,
        None => *classes.entry(found.st_dev).or_insert(class_of(&file).map_err(|error| unusable(&error))?),
    };
    match class {
        FilesystemClass::Device => Ok(ClosureFile { key: key_of(&found), size: size_of(&found), path }),
        FilesystemClass::Pseudo(name) => Err(SkipReason::Pseudo(name)),
        FilesystemClass::Network(name) => Err(SkipReason::Network(name.to_owned())),
    }
}

/// Symbolic links in a row that are followed, as in the kernel (`MAXSYMLINKS`, include/linux/namei.h).
const MOST_LINKS: usize = 40;

/// The file that a path leads to, open as a mere place, and its canonical path. Links are read and followed here and not
/// by the kernel, so that none leads into a file system that could keep us waiting.
pub(crate) fn resolve(path: &Path, table: &mut MountTable) -> Result<(PathBuf, OwnedFd), SkipReason> {
    let mut left: VecDeque<OsString> = path.components().map(|component| component.as_os_str().to_owned()).collect();
    let (mut done, mut links) = (PathBuf::from("/"), 0);
    // Most paths hold no link: one look instead of one for each part.
    if let Ok(file) = open_plainly(path, table)
        && let Ok(found) = fstat(&file)
        && FileType::from_raw_mode(found.st_mode) != FileType::Symlink
        && !left.iter().any(|part| part == "..")
    {
        return Ok((left.into_iter().collect(), file));
    }
    let mut file = open_plainly(&done, table)?;
    while let Some(part) = left.pop_front() {
        match part.as_bytes() {
            b"/" => done = PathBuf::from("/"),
            b"." => {}
            b".." => {
                done.pop();
            }
            _ => {
                let next = done.join(&part);
                file = open_plainly(&next, table)?;
                let found = fstat(&file).map_err(|errno| unusable(&errno.into()))?;
                if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
                    done = next;
                    continue;
                }
                links += 1;
                if links > MOST_LINKS {
                    return Err(unusable(&io::Error::from_raw_os_error(libc::ELOOP)));
                }
                let target = readlinkat(&file, "", Vec::new()).map_err(|errno| unusable(&errno.into()))?;
                let target = PathBuf::from(OsStr::from_bytes(target.to_bytes()));
                for part in target.components().rev() {
                    left.push_front(part.as_os_str().to_owned());
                }
            }
        }
    }
    Ok((done, file))
}

fn open_plainly(path: &Path, table: &mut MountTable) -> Result<OwnedFd, SkipReason> {
    // By name, before anything is looked up: following a link below /proc can have effects.
    refuse_kernel_tree(path)?;
    table.open(path, OFlags::PATH | OFlags::NOFOLLOW).map_err(not_opened)
}

/// What a path that was not opened means for the closure.
pub(crate) fn not_opened(problem: NotOpened) -> SkipReason {
    match problem {
        NotOpened::MayNeverAnswer(kind) => SkipReason::Network(kind),
        NotOpened::Link | NotOpened::MountedMeanwhile => SkipReason::Replaced,
        NotOpened::Io(error) => unusable(&error),
    }
}

fn refuse_kernel_tree(path: &Path) -> Result<(), SkipReason> {
    for (tree, name) in [("/proc", "proc"), ("/sys", "sysfs"), ("/dev", "devtmpfs")] {
        if path.starts_with(tree) {
            return Err(SkipReason::Pseudo(name));
        }
    }
    Ok(())
}

/// What a failed look-up of a path means for the closure.
pub(crate) fn unusable(error: &io::Error) -> SkipReason {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SkipReason::Vanished,
        _ => SkipReason::Unreadable(error.to_string()),
    }
}

/// The kind of a file that is not a regular one.
pub(crate) fn irregular(found: &Stat) -> Option<&'static str> {
    Some(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => return None,
        FileType::Directory => "directory",
        FileType::Symlink => "symbolic link",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        FileType::Fifo => "pipe",
        _ => "socket",
    })
}

pub(crate) fn size_of(found: &Stat) -> Bytes {
    Bytes(u64::try_from(found.st_size).unwrap_or(0))
}

/// Device and inode in the encoding of the tables (`major << 20 | minor`).
pub(crate) fn key_of(found: &Stat) -> FileKey {
    FileKey { dev: kernel_device(found.st_dev), ino: found.st_ino }
}

/// The same in the kernel's own halves.
pub(crate) fn identity_of(key: FileKey) -> FileIdentity {
    let (major, minor) = key.device();
    FileIdentity { major: major as u32, minor: minor as u32, inode: key.ino }
}

/// `st_dev` in the kernel's own encoding.
pub(crate) fn kernel_device(device: u64) -> u64 {
    u64::from(libc::major(device)) << 20 | u64::from(libc::minor(device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn reason_of(closure: &Closure, path: &Path) -> SkipReason {
        closure.skipped().iter().find(|skipped| skipped.path == path).expect("skipped").reason.clone()
    }

    #[test]
    fn every_path_that_is_no_local_regular_file_is_skipped_with_its_reason() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let paths: Vec<PathBuf> = vec![
            "[vdso]".into(),
            dir.path().join("gone"),
            dir.path().into(),
            dir.path().join("pipe"),
            "/proc/self/exe".into(),
            "/dev/null".into(),
            "/sys/kernel/uevent_seqnum".into(),
        ];
        let closure = Closure::from_paths(&paths);
        assert_eq!(closure.files().len(), 0);
        let reasons: Vec<_> = paths.iter().map(|path| reason_of(&closure, path)).collect();
        assert_eq!(
            reasons,
            [
                SkipReason::NotAPath,
                SkipReason::Vanished,
                SkipReason::NotRegular("directory"),
                SkipReason::NotRegular("pipe"),
                SkipReason::Pseudo("proc"),
                SkipReason::Pseudo("devtmpfs"),
                SkipReason::Pseudo("sysfs"),
            ]
        );
    }

    #[test]
    fn files_in_memory_are_skipped() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        // Reached by another name than /dev, through a link.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let link = dir.path().join("link");
        symlink(file.path(), &link).unwrap();
        let closure = Closure::from_paths([&link]);
        assert!(matches!(reason_of(&closure, &link), SkipReason::Pseudo(_)));
    }

    #[test]
    fn a_link_and_its_target_are_one_file_at_the_canonical_path() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = dir.path().canonicalize().unwrap().join("file");
        fs::write(&file, [7; 5000]).unwrap();
        let link = dir.path().join("link");
        symlink(&file, &link).unwrap();
        let closure = Closure::from_paths([&link, &file, &file]);
        assert_eq!(closure.files().map(|file| file.path.clone()).collect::<Vec<_>>(), [file]);
        assert!(closure.skipped().is_empty());
    }

    #[test]
    fn hard_links_are_two_files_whose_size_counts_once() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::write(&one, [7; 5000]).unwrap();
        fs::hard_link(&one, &two).unwrap();
        let closure = Closure::from_paths([&one, &two]);
        assert_eq!(closure.files().len(), 2);
        assert_eq!(closure.total_size(), Bytes(5000));
    }
}
