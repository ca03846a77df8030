//! Reading what families need to know of other files: bounded, and never waiting for a FIFO or a device.
//!
//! Paths are followed as a process follows them, links included, but not into file systems whose answers come from a server: paths
//! stand in files that anybody may have made, and root asks nobody's server. A file is looked at before it is opened for reading,
//! and the very same file is opened then.

use crate::access::LookupEnd;
use crate::gather::{LookupError, Machine};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// What a family compares of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    /// Time of the last change of the content, in seconds since 1970 and the nanoseconds behind.
    pub modified: (i64, u32),
    /// Size in bytes.
    pub size: u64,
}

/// Entries of one directory that are looked at.
const MOST_NAMES: usize = 100_000;

/// The mounts of this process, read once.
fn machine() -> io::Result<&'static Machine> {
    static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();
    let machine = MACHINE.get_or_init(|| Machine::read().ok()).as_ref();
    machine.ok_or_else(|| io::Error::other("/proc cannot be read"))
}

fn look(path: &Path) -> io::Result<(OwnedFd, rustix::fs::Stat)> {
    let found = machine()?.look_up(path).map_err(|error| match error {
        LookupError::Missing { .. } => io::Error::new(io::ErrorKind::NotFound, error),
        LookupError::Io { source, .. } => source,
        other => io::Error::other(other),
    })?;
    match (found.lookup.end, found.file) {
        (LookupEnd::File(facts), Some((_, file))) if !facts.mount.asks_server => {
            let status = fstat(&file)?;
            Ok((file, status))
        }
        (LookupEnd::Blocked(why), _) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        _ => Err(io::Error::other("it is on a file system that asks a server")),
    }
}

/// The stamp of what a path leads to.
pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    let (_, status) = look(path)?;
    let nanoseconds = u32::try_from(status.st_mtime_nsec).unwrap_or(0);
    Ok(Stamp { modified: (status.st_mtime, nanoseconds), size: u64::try_from(status.st_size).unwrap_or(0) })
}

/// Whether there is nothing at a path. Where that cannot be seen there may be something.
pub(crate) fn is_gone(path: &Path) -> bool {
    look(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The first `most` bytes of a regular file.
pub(crate) fn head(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, status) = look(path)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    // What the kernel makes up when it is read (a trace, say) has no size, and is changed by reading it.
    if status.st_size == 0 {
        return Ok(Vec::new());
    }
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = openat(CWD, own, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    File::from(opened).take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All of a regular file that has at most `most` bytes.
pub(crate) fn whole(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = head(path, most.saturating_add(1))?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// The names in a directory.
pub(crate) fn names(path: &Path) -> io::Result<Vec<OsString>> {
    let (directory, _) = look(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(directory, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(opened)?.take(MOST_NAMES) {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    #[test]
    fn a_fifo_and_a_file_that_is_too_large_are_errors_and_nothing_waits() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        mkfifo(&fifo, Mode::S_IRUSR).unwrap();
        assert!(head(&fifo, 16).unwrap_err().to_string().contains("no regular file"));
        let file = place.path().join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(head(&file, 3).unwrap(), b"123");
        assert_eq!(whole(&file, 5).unwrap(), b"12345");
        assert_eq!(whole(&file, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(is_gone(&place.path().join("none")) && !is_gone(&file));
    }
}
