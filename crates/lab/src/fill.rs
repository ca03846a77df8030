//! Copies a closure into a mounted image: content, mode, owner, times, extended attributes (capabilities, ACLs), hard
//! links, holes. A file that vanishes, cannot be read or keeps changing is skipped and reported.

use crate::closure::{Closure, ClosureFile, SkipReason, Skipped, irregular, key_of, not_opened, unusable};
use crate::device::{cached_pages, forget_pages};
use crate::error::{LabError, failed};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use slowpath_process::MountTable;
use slowpath_tables::{Bytes, FileKey, Pages};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How often a file that changes while it is copied is copied again.
const ATTEMPTS: usize = 3;

/// A host file as it is in the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// Canonical host path, which is also the path in the image.
    pub path: PathBuf,
    /// Inode number in the image.
    pub image_inode: u64,
    /// Device and inode on the host.
    pub host: FileKey,
    /// Size when it was copied.
    pub size: Bytes,
}

/// What came of filling an image.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub files: Vec<ImageFile>,
    pub skipped: Vec<Skipped>,
    /// Attributes that the image's file system did not take: path and what.
    pub lost_attributes: Vec<(PathBuf, String)>,
}

/// Copies all files of the closure below `root`, the mount point of the image. To be called in a mount namespace to which
/// nothing propagates: what users mount meanwhile is then not entered.
pub(crate) fn fill(closure: &Closure, root: &Path) -> Result<Filled, LabError> {
    let mut filled = Filled::default();
    let mut table =
        MountTable::read().map_err(failed("read the mounts in", Path::new("/proc/thread-self/mountinfo")))?;
    let mut directories = BTreeSet::new();
    let mut copied: HashMap<FileKey, PathBuf> = HashMap::new();
    for file in closure.files() {
        let target = inside(root, &file.path);
        make_directories(&file.path, root, &mut directories)?;
        match copy(file, &target, &mut table, &mut copied, &mut filled.lost_attributes) {
            Ok(size) => {
                let metadata = fs::symlink_metadata(&target).map_err(failed("look at", &target))?;
                filled.files.push(ImageFile {
                    path: file.path.clone(),
                    image_inode: metadata.ino(),
                    host: file.key,
                    size,
                });
            }
            Err(Failure::Skip(reason)) => {
                let _ = fs::remove_file(&target);
                filled.skipped.push(Skipped { path: file.path.clone(), reason });
            }
            Err(Failure::Image(error)) => return Err(error),
        }
    }
    // Creating an entry changes its directory's time, so directories get theirs last, the deepest first.
    for directory in directories.iter().rev() {
        let target = inside(root, directory);
        let to = open_directory(&target).map_err(failed("open the directory", &target))?;
        let from = table.open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW).map(File::from);
        let from = from.map_err(io::Error::from).and_then(|from| from.metadata().map(|metadata| (from, metadata)));
        let lost = &mut filled.lost_attributes;
        let closed = match from {
            Ok((from, metadata)) => set_attributes(&from, &to, &metadata, directory, lost)
                .map_err(failed("set the attributes of", &target))?
                .is_none(),
            // Gone or replaced in the meantime, like the files below it: it stays as it was made, closed to all but root.
            Err(error) => {
                lost.push((directory.clone(), error.to_string()));
                false
            }
        };
        if closed {
            nix::sys::stat::fchmod(&to, nix::sys::stat::Mode::S_IRWXU)
                .map_err(crate::error::failed_errno("set the mode of", &target))?;
        }
    }
    Ok(filled)
}

/// Where a host path is in an image mounted at `root`.
pub(crate) fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A file's trouble, or the image's.
enum Failure {
    Skip(SkipReason),
    Image(LabError),
}

fn make_directories(path: &Path, root: &Path, made: &mut BTreeSet<PathBuf>) -> Result<(), LabError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if parent == Path::new("/") || made.contains(parent) {
        return Ok(());
    }
    make_directories(parent, root, made)?;
    let target = inside(root, parent);
    // Closed until it gets the attributes of the host's.
    DirBuilder::new().mode(0o700).create(&target).map_err(failed("create the directory", &target))?;
    made.insert(parent.to_path_buf());
    Ok(())
}

fn copy(
    file: &ClosureFile,
    target: &Path,
    table: &mut MountTable,
    copied: &mut HashMap<FileKey, PathBuf>,
    lost: &mut Vec<(PathBuf, String)>,
) -> Result<Bytes, Failure> {
    let source = open_source(file, table).map_err(Failure::Skip)?;
    let image = |error: io::Error| Failure::Image(failed("write", target)(error));
    let skip = |error: io::Error| Failure::Skip(unusable(&error));
    let before = source.metadata().map_err(skip)?;
    if let Some(first) = copied.get(&file.key) {
        fs::hard_link(first, target).map_err(image)?;
        return Ok(Bytes(before.size()));
    }
    // Copying must not warm the host: pages that were not cached before are dropped afterwards.
    let was_cached = cached_pages(&source).map_or(true, |pages| pages > Pages(0));
    let destination = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target).map_err(image)?;
    let mut metadata = before;
    for _ in 0..ATTEMPTS {
        destination.set_len(0).map_err(image)?;
        copy_content(&source, &destination, metadata.size()).map_err(|error| match error {
            CopyError::Read(error) => skip(error),
            CopyError::Write(error) => image(error),
        })?;
        let after = source.metadata().map_err(skip)?;
        let same = (metadata.size(), metadata.mtime(), metadata.mtime_nsec())
            == (after.size(), after.mtime(), after.mtime_nsec());
        metadata = after;
        if same {
            if !was_cached {
                let _ = forget_pages(&source);
            }
            set_attributes(&source, &destination, &metadata, &file.path, lost)
                .map_err(image)?
                .ok_or(Failure::Skip(SkipReason::AccessList))?;
            copied.insert(file.key, target.to_path_buf());
            return Ok(Bytes(metadata.size()));
        }
    }
    Err(Failure::Skip(SkipReason::Changed))
}

/// Opens the very file that the closure lists. Nothing but a regular file is ever opened for reading, which could have
/// effects or wait; a lease that its owner has taken makes it unreadable (`O_NONBLOCK`).
fn open_source(file: &ClosureFile, table: &mut MountTable) -> Result<File, SkipReason> {
    let place = table.open(&file.path, OFlags::PATH | OFlags::NOFOLLOW).map_err(not_opened)?;
    let found = fstat(&place).map_err(|errno| unusable(&errno.into()))?;
    match irregular(&found) {
        Some("symbolic link") => return Err(SkipReason::Replaced),
        Some(kind) => return Err(SkipReason::NotRegular(kind)),
        None if key_of(&found) != file.key => return Err(SkipReason::Replaced),
        None => {}
    }
    readable(&place).map_err(|error| unusable(&error))
}

/// Opens for reading what is open as a mere place, and was seen to be a regular file.
pub(crate) fn readable(place: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(openat(CWD, format!("/proc/self/fd/{}", place.as_raw_fd()), flags, Mode::empty())?))
}

fn open_directory(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)
}

/// Which side of a copy failed.
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Copies the ranges that hold data; the rest stay holes.
fn copy_content(source: &File, destination: &File, size: u64) -> Result<(), CopyError> {
    destination.set_len(size).map_err(CopyError::Write)?;
    let mut position = 0;
    while position < size {
        let data = match seek(source, position, libc::SEEK_DATA) {
            Ok(data) => data,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            Err(error) => return Err(CopyError::Read(error)),
        };
        let hole = seek(source, data, libc::SEEK_HOLE).map_err(CopyError::Read)?.min(size);
        copy_range(source, destination, data, hole)?;
        position = hole.max(data + 1);
    }
    Ok(())
}

fn seek(file: &File, offset: u64, whence: libc::c_int) -> io::Result<u64> {
    // SAFETY: takes an open descriptor and numbers only.
    let position = unsafe { libc::lseek64(file.as_raw_fd(), offset as i64, whence) };
    u64::try_from(position).map_err(|_| io::Error::last_os_error())
}

/// In-kernel copy: a reflink or `copy_file_range` cannot cross file systems, `sendfile` can.
fn copy_range(source: &File, destination: &File, from: u64, to: u64) -> Result<(), CopyError> {
    seek(destination, from, libc::SEEK_SET).map_err(CopyError::Write)?;
    let mut offset = from as i64;
    while (offset as u64) < to {
        let wanted = usize::try_from(to - offset as u64).unwrap_or(usize::MAX).min(1 << 24);
        // SAFETY: both descriptors are open; `offset` is valid for reading and writing.
        match unsafe { libc::sendfile64(destination.as_raw_fd(), source.as_raw_fd(), &raw mut offset, wanted) } {
            // Shorter than it was: the caller sees the change of size.
            0 => break,
            1.. => {}
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error if error.kind() == io::ErrorKind::StorageFull => return Err(CopyError::Write(error)),
                error => return Err(CopyError::Read(error)),
            },
        }
    }
    Ok(())
}

/// Owner first, since changing it clears set-id bits and capabilities; times last, since everything changes them. `None`: a
/// list of who may use it could not be copied, without which others than before might.
fn set_attributes(
    from: &File,
    to: &File,
    metadata: &Metadata,
    path: &Path,
    lost: &mut Vec<(PathBuf, String)>,
) -> io::Result<Option<()>> {
    let mut whole = Some(());
    std::os::unix::fs::fchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    nix::sys::stat::fchmod(to, nix::sys::stat::Mode::from_bits_truncate(metadata.mode() & 0o7777))?;
    for name in crate::attributes::names(from)? {
        if let Err(error) = crate::attributes::copy(from, to, &name) {
            lost.push((path.to_path_buf(), format!("{}: {error}", name.to_string_lossy())));
            if name.to_bytes().starts_with(b"system.") {
                whole = None;
            }
        }
    }
    let time = |seconds: i64, nanoseconds: i64| nix::sys::time::TimeSpec::new(seconds, nanoseconds);
    nix::sys::stat::futimens(
        to,
        &time(metadata.atime(), metadata.atime_nsec()),
        &time(metadata.mtime(), metadata.mtime_nsec()),
    )?;
    Ok(whole)
}
