//! Mounts from and over what is open: no path is looked up a second time. Owns what a place takes from programs and what a mount over it
//! must take, too; leaves which steps there are to [`super::Mounting`].

use std::io;

use nix::mount::MsFlags;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use slowpath_process::MountPoint;

/// Options by which a mount takes something from programs, by their names in mountinfo(5).
const RESTRICTIONS: [(&str, MsFlags, u64); 4] = [
    ("nosuid", MsFlags::MS_NOSUID, libc::MOUNT_ATTR_NOSUID),
    ("nodev", MsFlags::MS_NODEV, libc::MOUNT_ATTR_NODEV),
    ("noexec", MsFlags::MS_NOEXEC, libc::MOUNT_ATTR_NOEXEC),
    // `MS_NOSYMFOLLOW` and `MOUNT_ATTR_NOSYMFOLLOW`, include/uapi/linux/mount.h
    ("nosymfollow", MsFlags::from_bits_retain(256), 0x0020_0000),
];

/// What a mount of [`crate::MountStep::Ext4`] has, and copies in it get rid of where their place allows it.
pub(super) const STORE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;

/// How a place to mount from or over is opened.
pub(super) const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW);

/// What the mount restricts, as flags of mount(2) and as attributes of mount_setattr(2).
pub(super) fn restrictions(of: Option<&MountPoint>) -> (MsFlags, u64) {
    let unknown = of.is_none();
    let in_force = RESTRICTIONS.iter().filter(|(name, ..)| unknown || of.is_some_and(|mount| mount.has_option(name)));
    in_force.fold((MsFlags::empty(), 0), |(flags, attributes), one| (flags | one.1, attributes | one.2))
}

/// A mount of what is open, attached nowhere yet; recursive with the mounts below it.
pub(super) fn clone(from: &OwnedFd, recursive: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(from, "", flags)?)
}

/// Attaches such a mount over a place.
pub(super) fn attach(tree: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", to, "", flags).map_err(Errno::into)
}

/// The descriptor as a path: leads to what was opened, whatever stands at its old path.
pub(super) fn own_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
