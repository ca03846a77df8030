//! Opening what a stranger may have put at a path, and telling whether it is still what was recorded.

use super::{Reason, image};
use nix::fcntl::OFlag;
use nix::sys::statfs::{self, FsType};
use slowpath_tables as tables;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where a recorded file is now, and what identified its content then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// Path, as this process can open it.
    pub path: PathBuf,
    /// Size in bytes; null where it was not recorded.
    pub size: Option<u64>,
    /// Modification time, ns since 1970.
    pub mtime: Option<i64>,
    /// Build-id in hexadecimal.
    pub build_id: Option<String>,
}

impl Located {
    /// The file of a row of `files`, at its recorded path.
    pub fn of(row: &tables::File) -> Self {
        Self {
            path: PathBuf::from(&row.path),
            size: row.size.map(|size| size.0),
            mtime: row.mtime,
            build_id: row.build_id.clone(),
        }
    }
}

/// The reason that an error of `open` or `read` gives.
pub(super) fn reason_of(error: &std::io::Error) -> Reason {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Reason::FileMissing,
        ErrorKind::PermissionDenied => Reason::PermissionDenied,
        _ => Reason::FileUnreadable,
    }
}

/// File systems whose regular files are the kernel's own: to read one can have effects, wait for an event or take what another
/// reader is waiting for (`/proc/kmsg`, `trace_pipe`), and none of them holds code.
const OF_THE_KERNEL: [FsType; 9] = [
    statfs::BPF_FS_MAGIC,
    statfs::CGROUP2_SUPER_MAGIC,
    statfs::CGROUP_SUPER_MAGIC,
    statfs::DEBUGFS_MAGIC,
    statfs::PROC_SUPER_MAGIC,
    statfs::SECURITYFS_MAGIC,
    statfs::SELINUX_MAGIC,
    statfs::SYSFS_MAGIC,
    statfs::TRACEFS_MAGIC,
];

/// Opens a regular file for reading.
///
/// What stands at the path is looked at through a descriptor that opens nothing (`O_PATH`: no device rewinds, no pipe waits), and
/// that very file is then opened, so it cannot be exchanged in between. Symbolic links are followed: a path through `/proc/PID`
/// ends in one.
pub(super) fn open(path: &Path) -> Result<File, Reason> {
    let open = |path: &Path, flags: OFlag| {
        std::fs::OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).map_err(|error| reason_of(&error))
    };
    let there = open(path, OFlag::O_PATH)?;
    if !there.metadata().map_err(|error| reason_of(&error))?.is_file() {
        return Err(Reason::NotRegular);
    }
    let system = statfs::fstatfs(&there).map_err(|error| reason_of(&error.into()))?;
    if OF_THE_KERNEL.contains(&system.filesystem_type()) {
        return Err(Reason::NotRegular);
    }
    open(&path_of(&there), OFlag::O_NONBLOCK | OFlag::O_NOCTTY)
}

/// A path that opens the very file of this descriptor, whatever stands at its old path by now.
pub(super) fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A file that exists in memory only and holds these bytes.
pub(super) fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    use std::io::Write;
    let mut file = File::from(nix::sys::memfd::memfd_create("symbols", nix::sys::memfd::MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

/// Whether the content is what was recorded. Two build-ids decide alone: a copy of a file has its code, and its own times. Where
/// nothing but a build-id was recorded, nothing else decides.
pub(super) fn is_unchanged(located: &Located, file: &File, build_id: Option<&[u8]>) -> bool {
    if let (Some(recorded), Some(now)) = (&located.build_id, build_id) {
        return recorded.eq_ignore_ascii_case(&image::hexadecimal(now));
    }
    if located.build_id.is_some() && located.size.is_none() && located.mtime.is_none() {
        return false;
    }
    let Ok(metadata) = file.metadata() else { return false };
    let mtime = metadata.mtime().checked_mul(1_000_000_000).and_then(|mtime| mtime.checked_add(metadata.mtime_nsec()));
    let same_size = located.size.is_none_or(|size| size == metadata.len());
    let same_time = located.mtime.is_none_or(|recorded| Some(recorded) == mtime);
    same_size && same_time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_directories_are_refused_without_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link, Path::new("/dev/zero"), directory.path()] {
            assert_eq!(open(path).unwrap_err(), Reason::NotRegular, "{}", path.display());
        }
        assert_eq!(open(&directory.path().join("gone")).unwrap_err(), Reason::FileMissing);
        assert_eq!(open(&link.join("below")).unwrap_err(), Reason::FileMissing);
    }

    #[test]
    fn files_of_the_kernel_are_no_regular_files() {
        for path in ["/proc/self/maps", "/proc/version", "/sys/kernel/notes"] {
            let found = open(Path::new(path)).unwrap_err();
            assert!(matches!(found, Reason::NotRegular | Reason::FileMissing), "{path}: {found:?}");
        }
        // What `/proc` only leads to is looked at itself.
        let file = tempfile::tempfile().unwrap();
        assert!(open(&path_of(&file)).is_ok());
    }

    #[test]
    fn errors_of_the_system_have_their_reasons() {
        let of = |errno: nix::errno::Errno| reason_of(&std::io::Error::from(errno));
        assert_eq!(of(nix::errno::Errno::EACCES), Reason::PermissionDenied);
        assert_eq!(of(nix::errno::Errno::EPERM), Reason::PermissionDenied);
        assert_eq!(of(nix::errno::Errno::ENOENT), Reason::FileMissing);
        assert_eq!(of(nix::errno::Errno::EIO), Reason::FileUnreadable);
    }

    #[test]
    fn build_ids_decide_before_size_and_time() {
        let file = tempfile::tempfile().unwrap();
        let located = |size, mtime, build_id: Option<&str>| Located {
            path: PathBuf::new(),
            size,
            mtime,
            build_id: build_id.map(str::to_owned),
        };
        assert!(is_unchanged(&located(Some(77), Some(5), Some("0aFF")), &file, Some(&[0x0a, 0xff])));
        assert!(!is_unchanged(&located(Some(0), None, Some("0aFE")), &file, Some(&[0x0a, 0xff])));
        assert!(is_unchanged(&located(Some(0), None, Some("0aFF")), &file, None));
        assert!(!is_unchanged(&located(Some(1), None, None), &file, None));
        assert!(!is_unchanged(&located(Some(0), Some(5), None), &file, None));
        assert!(is_unchanged(&located(None, None, None), &file, None));
        assert!(!is_unchanged(&located(None, None, Some("0aFF")), &file, None));
    }
}
