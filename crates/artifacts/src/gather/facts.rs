//! The facts of one open file: statx(2), its access control list, its mount.

use crate::access::{Acl, AclFact, Component, FileKind, MountFacts};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, getxattr, statx};
use rustix::io::Errno;
use slowpath_process::MountPoint;
use std::io;
use std::path::Path;

/// The name of the list's extended attribute, and the longest value of any (`XATTR_SIZE_MAX`, include/uapi/linux/limits.h).
const ATTRIBUTE: &str = "system.posix_acl_access";
const LONGEST: usize = 65_536;

/// File systems besides those of other machines and of users' processes whose own code decides about access, by more than mode bits and
/// lists: `proc_pid_permission` (hidepid), `ovl_permission` (also the rights of whoever mounted it, on the layers below), `ecryptfs`,
/// `orangefs`, `ocfs2`.
const DECIDE_THEMSELVES: &[&str] = &["proc", "ecryptfs", "orangefs", "ocfs2"];

/// What statx(2) says of an open file. Asks no server of a network or user-space file system.
pub(super) fn status(file: impl AsFd) -> io::Result<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    Ok(statx(file, "", flags, wanted)?)
}

/// Kind of a file by its mode.
pub(super) fn kind(status: &Statx) -> FileKind {
    match FileType::from_raw_mode(status.stx_mode.into()) {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Special,
    }
}

/// The facts of a file that is open, if only as a path (`O_PATH`). `sees_all_ids` is whether every id of the machine is one here.
pub(super) fn component(
    path: &Path,
    file: impl AsFd,
    status: &Statx,
    mount: Option<&MountPoint>,
    sees_all_ids: bool,
) -> Component {
    let kind = kind(status);
    let mut mount = mount_facts(mount);
    // A namespace that maps few ids shows all others as the overflow id.
    if !sees_all_ids && [status.stx_uid, status.stx_gid].contains(&slowpath_process::NOBODY) {
        let why = "its owner or group is not mapped in the user namespace of slowpath";
        mount.undecidable.get_or_insert_with(|| why.to_owned());
    }
    // What a server answers may never come, and decides nothing.
    let acl = if mount.undecidable.is_some() || kind == FileKind::Link { AclFact::None } else { acl(file) };
    Component {
        path: path.to_owned(),
        kind,
        mode: u32::from(status.stx_mode) & 0o7777,
        uid: status.stx_uid,
        gid: status.stx_gid,
        acl,
        immutable: status.stx_attributes.contains(StatxAttributes::IMMUTABLE),
        mount,
    }
}

fn mount_facts(mount: Option<&MountPoint>) -> MountFacts {
    let Some(mount) = mount else {
        let undecidable = Some("its mount is not in /proc/thread-self/mountinfo".to_owned());
        return MountFacts { undecidable, ..MountFacts::default() };
    };
    let undecidable = if mount.may_never_answer() {
        Some(format!("{} asks a server who may do what", mount.kind))
    } else if DECIDE_THEMSELVES.contains(&mount.kind.as_str()) {
        Some(format!("{} has rules of its own", mount.kind))
    } else if mount.has_option("idmapped") {
        Some("its mount maps ids".to_owned())
    } else {
        None
    };
    MountFacts {
        read_only: mount.has_option("ro"),
        read_only_file_system: mount.super_options.split(',').any(|option| option == "ro"),
        no_exec: mount.has_option("noexec"),
        no_symlink_follow: mount.has_option("nosymfollow"),
        asks_server: mount.may_never_answer(),
        undecidable,
    }
}

/// The list of a file that is open as a path: fgetxattr(2) takes no such descriptor, the link in /proc does.
fn acl(file: impl AsFd) -> AclFact {
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let mut value = vec![0; 256];
    loop {
        match getxattr(link.as_str(), ATTRIBUTE, value.as_mut_slice()) {
            Ok(length) => {
                return match Acl::of_attribute(value.get(..length).unwrap_or_default()) {
                    Ok(acl) => AclFact::Entries(acl),
                    Err(problem) => AclFact::Unread(problem.to_string()),
                };
            }
            // No list, or a file system without any.
            Err(Errno::NODATA | Errno::OPNOTSUPP) => return AclFact::None,
            Err(Errno::RANGE) if value.len() < LONGEST => value = vec![0; LONGEST],
            Err(errno) => return AclFact::Unread(io::Error::from(errno).to_string()),
        }
    }
}
