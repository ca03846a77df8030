//! A directory held by descriptor: everything is created and opened relative to it and no symbolic link is followed,
//! so that nobody who can write beside the recording can turn its files elsewhere.

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, posix_fallocate, renameat};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

const FILE_MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// A directory, open.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
}

/// Why a directory for output cannot be had.
#[derive(Debug)]
pub(crate) enum CreateProblem {
    /// The last component of the path is a symbolic link.
    Symlink,
    /// The path exists and is no directory.
    NotADirectory,
    /// The system refused.
    System(io::Error),
}

fn directory_flags() -> OFlag {
    OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_RDONLY
}

impl Directory {
    /// Opens an existing directory to read from.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: nix::fcntl::open(path, directory_flags(), Mode::empty())? })
    }

    /// Opens the directory at `path`, making it (0700) if there is none. Its last component must not be a link.
    pub(crate) fn create(path: &Path) -> Result<Self, CreateProblem> {
        let system = |errno: Errno| CreateProblem::System(errno.into());
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // `.` and `x/..` have no last name to create; they exist or fail.
        let name = path.file_name().map_or(path, Path::new);
        let parent = nix::fcntl::open(parent, directory_flags(), Mode::empty()).map_err(system)?;
        match mkdirat(&parent, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(system(errno)),
        }
        match openat(&parent, name, directory_flags() | OFlag::O_NOFOLLOW, Mode::empty()) {
            Ok(fd) => Ok(Self { fd }),
            Err(errno) => match fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) if is(stat.st_mode, SFlag::S_IFLNK) => Err(CreateProblem::Symlink),
                Ok(stat) if !is(stat.st_mode, SFlag::S_IFDIR) => Err(CreateProblem::NotADirectory),
                _ => Err(system(errno)),
            },
        }
    }

    /// Opens or makes (0700) the directory `name` in this one.
    pub(crate) fn subdirectory(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.fd, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(Self { fd: openat(&self.fd, name, directory_flags() | OFlag::O_NOFOLLOW, Mode::empty())? })
    }

    /// Names in the directory, without `.` and `..`.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut dir = Dir::openat(self.fd.as_fd(), ".", directory_flags(), Mode::empty())?;
        let mut names = Vec::new();
        for entry in dir.iter() {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Writes `name` (0600) under a temporary name and renames it into place; on failure nothing of it stays.
    ///
    /// No fsync: a recording survives the death of its recorder, not of the machine.
    pub(crate) fn write_whole(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let temporary = format!(".{name}.tmp");
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, temporary.as_str(), flags, FILE_MODE)?;
        let written = File::from(fd)
            .write_all(content)
            .and_then(|()| Ok(renameat(&self.fd, temporary.as_str(), &self.fd, name)?));
        if written.is_err() {
            self.remove(&temporary)?;
        }
        written
    }

    /// Makes a file (0600) that takes up `bytes` of space; on failure nothing of it stays.
    pub(crate) fn reserve(&self, name: &str, bytes: u64) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, name, flags, FILE_MODE)?;
        let held = i64::try_from(bytes).map_err(io::Error::other).and_then(|b| Ok(posix_fallocate(&fd, 0, b)?));
        if held.is_err() {
            self.remove(name)?;
        }
        held
    }

    /// Has a file made by [`Directory::reserve`] take up `bytes`; on failure it stays as it was.
    pub(crate) fn reserve_more(&self, name: &str, bytes: u64) -> io::Result<()> {
        let fd = openat(&self.fd, name, OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(posix_fallocate(&fd, 0, i64::try_from(bytes).map_err(io::Error::other)?)?)
    }

    /// Removes an empty directory in this one.
    pub(crate) fn remove_directory(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Opens a regular file below the directory; neither a link nor a pipe that would block is opened.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match name.split_once('/') {
            None => File::from(openat(&self.fd, name, flags, Mode::empty())?),
            Some((folder, file)) => {
                let folder = openat(&self.fd, folder, directory_flags() | OFlag::O_NOFOLLOW, Mode::empty())?;
                File::from(openat(&folder, file, flags, Mode::empty())?)
            }
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        Ok(file)
    }

    /// Reads a file of at most `limit` bytes.
    pub(crate) fn read_file(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open_file(name)?.take(limit.saturating_add(1)).read_to_end(&mut content)?;
        if content.len() as u64 > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("is larger than {limit} bytes")));
        }
        Ok(content)
    }
}

fn is(mode: u32, kind: SFlag) -> bool {
    mode & SFlag::S_IFMT.bits() == kind.bits()
}
