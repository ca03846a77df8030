//! Opens a planned file the way a hostile plan deserves.
//!
//! Owns the rules: as the calling user, regular files only, for reading only, no symbolic link in any part of the path,
//! never blocking, access time left alone where that is permitted, content unchanged since the plan was made, no
//! network file system unless asked. Leaves reading to [`crate::preload_plan::replay`].

use crate::preload_plan::PlannedFile;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::sys::statfs::fstatfs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;

/// Why a file or a range of a plan was not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// There is no such file.
    Missing,
    /// Size or modification time differ from the plan's.
    Changed,
    /// The user may not read it.
    Unreadable,
    /// A part of the path is a symbolic link: a canonical path has none, so it was swapped in.
    SymbolicLink,
    /// A directory, a device, a socket, a FIFO.
    NotRegular,
    /// It lies on a network file system (or on FUSE, which may be one).
    NetworkFileSystem,
    /// The limit of bytes was reached.
    OverByteCap,
    /// The process has no descriptor left.
    TooManyOpenFiles,
    /// Any other error of the system.
    Failed,
}

/// Magic numbers of file systems whose files may lie on another machine (`include/uapi/linux/magic.h`, statfs(2)).
/// FUSE is among them because nothing distinguishes a remote FUSE file system from a local one; autofs because looking mounts.
const NETWORK_MAGICS: [u32; 13] = [
    0x0000_6969, // NFS
    0x0000_517B, // SMB
    0xFF53_4D42, // CIFS
    0xFE53_4D42, // SMB2
    0x00C3_6400, // Ceph
    0x5346_414F, // AFS (OpenAFS)
    0x6B41_4653, // AFS (kernel)
    0x7375_7245, // Coda
    0x0000_564C, // NCP
    0x0102_1997, // 9P
    0x0BD0_0BD0, // Lustre
    0x6573_5546, // FUSE
    0x0000_0187, // autofs
];

fn reason(errno: Errno) -> SkipReason {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR => SkipReason::Missing,
        Errno::EACCES | Errno::EPERM => SkipReason::Unreadable,
        Errno::ELOOP => SkipReason::SymbolicLink,
        Errno::EMFILE | Errno::ENFILE => SkipReason::TooManyOpenFiles,
        Errno::ENXIO => SkipReason::NotRegular,
        _ => SkipReason::Failed,
    }
}

/// Compares a file's status with what the plan says of it.
pub(crate) fn check_status(status: &FileStat, planned: &PlannedFile) -> Result<(), SkipReason> {
    match SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => {}
        SFlag::S_IFLNK => return Err(SkipReason::SymbolicLink),
        _ => return Err(SkipReason::NotRegular),
    }
    let mtime_ns = status.st_mtime.saturating_mul(1_000_000_000).saturating_add(status.st_mtime_nsec);
    if u64::try_from(status.st_size) != Ok(planned.size) || mtime_ns != planned.mtime_ns {
        return Err(SkipReason::Changed);
    }
    Ok(())
}

/// Opens without following a symbolic link anywhere in the path.
fn open_no_links(path: &str, flags: OFlag) -> Result<File, Errno> {
    let how =
        OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    match openat2(AT_FDCWD, path, how) {
        // A kernel before 5.6, or a seccomp filter that does not know the call: the last part at least is guarded.
        Err(Errno::ENOSYS) => open(path, flags, Mode::empty()).map(File::from),
        opened => opened.map(File::from),
    }
}

/// Opens a planned file, or says why it is left out.
///
/// # Errors
/// The reason for leaving it out; see [`SkipReason`].
pub fn open_planned(planned: &PlannedFile, network: bool) -> Result<(File, FileStat), SkipReason> {
    // Looking first keeps devices and FIFOs from being opened at all: opening one can do things by itself.
    let path = planned.path.as_str();
    let before = fstatat(AT_FDCWD, path, AtFlags::AT_SYMLINK_NOFOLLOW).map_err(reason)?;
    check_status(&before, planned)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    // O_NOATIME is for the owner and the privileged only.
    let opened = match open_no_links(path, flags | OFlag::O_NOATIME) {
        Err(Errno::EPERM) => open_no_links(path, flags),
        opened => opened,
    };
    let file = opened.map_err(reason)?;
    // What was opened need not be what was looked at.
    let status = fstat(&file).map_err(reason)?;
    check_status(&status, planned)?;
    if !network {
        let magic = fstatfs(&file).map_err(reason)?.filesystem_type().0;
        // Some architectures sign-extend the field; all magic numbers have 32 bits.
        if NETWORK_MAGICS.contains(&(magic as u32)) {
            return Err(SkipReason::NetworkFileSystem);
        }
    }
    Ok((file, status))
}
