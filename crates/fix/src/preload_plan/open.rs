//! Opens a planned file the way a hostile plan deserves.
//!
//! Owns the rules: as the calling user, regular files only, for reading only, no symbolic link in any part of the path,
//! never blocking, access time left alone where that is permitted, content unchanged since the plan was made, no
//! network file system unless asked: such a path is not even looked up. Leaves reading to [`crate::preload_plan::replay`].

use crate::preload_plan::PlannedFile;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::sys::statfs::fstatfs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_process::MountPoint;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

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

fn kind(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT
}

/// Compares a file's status with what the plan says of it.
fn check_status(status: &FileStat, planned: &PlannedFile) -> Result<(), SkipReason> {
    match kind(status) {
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

/// Which paths lead over a file system that a user's process or another machine answers for. A lookup there can take for ever, and its wait
/// ends with no signal once the question is asked (fs/fuse/dev.c, `request_wait_answer`): so the mounts decide, before anything is touched.
#[derive(Debug)]
pub struct Mounts {
    points: Vec<MountPoint>,
    /// Where those are that may never answer.
    slow: Vec<PathBuf>,
    network: bool,
}

impl Mounts {
    /// As they are now; with `network` every path may be looked up. Without `/proc` none is known, and what is opened shows where it lies.
    pub fn now(network: bool) -> Self {
        let points = if network { Vec::new() } else { MountPoint::all().unwrap_or_default() };
        Self::of(points, network)
    }

    fn of(points: Vec<MountPoint>, network: bool) -> Self {
        let slow = points.iter().filter(|point| point.may_never_answer()).map(|point| point.at.clone()).collect();
        Self { points, slow, network }
    }

    /// Whether a lookup of `path`, which has no symbolic link, enters such a file system: where several are mounted at one place, the last.
    fn may_never_answer(&self, path: &Path) -> bool {
        if !self.slow.iter().any(|at| path.starts_with(at)) {
            return false;
        }
        let is_root = |point: &&MountPoint| {
            let is_mounted_on = |other: &MountPoint| other.id == point.parent && other.id != point.id;
            point.at == Path::new("/") && !self.points.iter().any(is_mounted_on)
        };
        let Some(mut here) = self.points.iter().find(is_root) else { return true };
        // Each step leads to a mount on the one before; the table may have been read while something was mounted.
        for _ in 0..self.points.len() {
            let on_it =
                self.points.iter().filter(|on| on.parent == here.id && on.id != here.id && path.starts_with(&on.at));
            let next = on_it.min_by_key(|on| on.at.as_os_str().len());
            let is_covered = next.is_some_and(|next| next.at == here.at);
            if !is_covered && here.may_never_answer() {
                return true;
            }
            match next {
                Some(next) => here = next,
                None => return false,
            }
        }
        true
    }
}

/// Finds a file without opening it, and without following a symbolic link anywhere in the path.
fn find(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let how =
        OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    match openat2(AT_FDCWD, path, how) {
        // A kernel before 5.6, or a seccomp filter that does not know the call, as that of `slowpath_process::Sandbox`.
        Err(Errno::ENOSYS) => find_by_parts(path, flags),
        found => found,
    }
}

/// The same by one call for each part: a link is found as what it is, and has nothing beneath it.
fn find_by_parts(path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    let mut found = open("/", flags | OFlag::O_DIRECTORY, Mode::empty())?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        found = match openat(&found, part, flags, Mode::empty()) {
            Err(Errno::ENOTDIR) if kind(&fstat(&found)?) == SFlag::S_IFLNK => return Err(Errno::ELOOP),
            next => next?,
        };
    }
    Ok(found)
}

/// Opens a planned file, or says why it is left out.
///
/// # Errors
/// The reason for leaving it out; see [`SkipReason`].
pub fn open_planned(planned: &PlannedFile, mounts: &Mounts) -> Result<(File, FileStat), SkipReason> {
    let path = planned.path.as_str();
    if mounts.may_never_answer(Path::new(path)) {
        return Err(SkipReason::NetworkFileSystem);
    }
    // Looking first keeps devices and FIFOs from being opened at all: opening one can do things by itself.
    let found = find(path).map_err(reason)?;
    let status = fstat(&found).map_err(reason)?;
    check_status(&status, planned)?;
    if !mounts.network {
        let magic = fstatfs(&found).map_err(reason)?.filesystem_type().0;
        // Some architectures sign-extend the field; all magic numbers have 32 bits.
        if NETWORK_MAGICS.contains(&(magic as u32)) {
            return Err(SkipReason::NetworkFileSystem);
        }
    }
    // By that descriptor: what is opened is what was looked at.
    let own = format!("/proc/self/fd/{}", found.as_raw_fd());
    let opened = |more| {
        open(
            own.as_str(),
            OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY | more,
            Mode::empty(),
        )
    };
    // O_NOATIME is for the owner and the privileged only.
    let file = match opened(OFlag::O_NOATIME) {
        Err(Errno::EPERM) => opened(OFlag::empty()),
        opened => opened,
    };
    match file {
        Ok(file) => Ok((file.into(), status)),
        // There is no /proc here.
        Err(Errno::ENOENT) => Err(SkipReason::Failed),
        Err(errno) => Err(reason(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root, a FUSE file system at `/fuse` with one of this machine in it, and an automounter that has mounted `/data`.
    const TABLE: &[u8] = b"20 1 8:1 / / rw - ext4 /dev/a rw\n\
        21 20 0:30 / /fuse rw - fuse.sshfs x rw\n\
        22 21 8:2 / /fuse/own rw - ext4 /dev/b rw\n\
        23 20 0:31 / /data rw - autofs systemd-1 rw\n\
        24 23 8:3 / /data rw - ext4 /dev/c rw\n\
        25 24 0:32 / /data/of\\040all rw - nfs4 host:/ rw\n\
        26 20 0:33 / /hidden rw - fuse x rw\n\
        27 26 8:4 / /hidden/deep rw - ext4 /dev/d rw\n\
        28 26 8:5 / /hidden rw - ext4 /dev/e rw\n";

    #[test]
    fn a_path_is_looked_up_only_where_the_mounts_that_are_seen_on_its_way_answer_by_themselves() {
        let mounts = Mounts::of(MountPoint::parse(TABLE), false);
        for (path, expected) in [
            ("/usr/bin/true", false),
            ("/fuse", true),
            ("/fuse/a", true),
            ("/fuses/a", false),
            ("/fuse/own/a", true),
            ("/data/a", false),
            ("/data/of all/a", true),
            ("/hidden/a", false),
            ("/hidden/deep/a", false),
        ] {
            assert_eq!(mounts.may_never_answer(Path::new(path)), expected, "{path}");
        }
        // Without the root's own line, as in a chroot(2), nobody knows what is seen.
        let without =
            Mounts::of(MountPoint::parse(&TABLE[TABLE.iter().position(|byte| *byte == b'\n').unwrap()..]), false);
        assert!(without.may_never_answer(Path::new("/data/a")) && !without.may_never_answer(Path::new("/usr/a")));
    }

    #[test]
    fn by_parts_the_same_is_found_and_a_link_is_followed_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/file"), "x").unwrap();
        std::os::unix::fs::symlink("d", at("link")).unwrap();
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        for name in ["d/file", "d", "link"] {
            let [one, other] =
                [find(&at(name)), find_by_parts(&at(name), flags)].map(|found| fstat(found.unwrap()).unwrap());
            assert_eq!((one.st_ino, one.st_mode), (other.st_ino, other.st_mode), "{name}");
        }
        for (name, errno) in [("link/file", Errno::ELOOP), ("d/file/x", Errno::ENOTDIR), ("none", Errno::ENOENT)] {
            assert_eq!(find(&at(name)).unwrap_err(), errno, "{name}");
            assert_eq!(find_by_parts(&at(name), flags).unwrap_err(), errno, "{name}");
        }
    }
}
