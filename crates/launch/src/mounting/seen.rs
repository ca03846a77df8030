//! Makes a file or directory be seen otherwise, in this mount namespace alone.
//!
//! A file is covered by a copy on a tmpfs, a directory by an overlay whose upper layer holds only what is seen otherwise: what is below it
//! stays what it is, and what the launch writes there goes with the launch. The tmpfs is attached for the moment in which the kernel lets
//! us take mounts from it, over the root directory, where no path leads to it.
//!
//! Owner, mode and inode of what is covered are compared with what was looked at, on the descriptor that is copied from; an owner who
//! puts something else there in the meantime gets no launch.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};
use rustix::fs::{
    CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fsetxattr,
    fstat, futimens, getxattr, mkdirat, mknodat, openat, openat2,
};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen};
use slowpath_process::{MountPoint, MountTable};

use super::descriptor_mount::{PLACE, STORE, attach, clone, own_path, restrictions};
use crate::seen_file::MOST_COPIED_BYTES;
use crate::{LookedAt, SeenFile, sys};

/// A directory that is covered by an overlay, and what it is itself.
#[derive(Debug)]
pub(super) struct Covered {
    path: PathBuf,
    itself: OwnedFd,
}

const FOREIGN: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Extended attributes that say who may use a directory and what is made in it, besides the access control list itself.
const KEPT: [&str; 2] = ["system.posix_acl_default", "security.selinux"];
/// The longest value of an extended attribute (`XATTR_SIZE_MAX`, include/uapi/linux/limits.h).
const LONGEST: usize = 65_536;

/// Has a file or directory be seen so. Directories come before what lies below them.
///
/// # Errors
/// Something else is there than what was looked at, something is mounted below it, or the kernel refuses.
pub(super) fn show(table: &mut MountTable, covered: &mut Vec<Covered>, file: &SeenFile) -> io::Result<()> {
    let place = table.open(&file.path, PLACE)?;
    let itself = itself(covered, &file.path, &place)?;
    if LookedAt::of(&itself)? != file.was {
        return Err(Errno::STALE.into());
    }
    let mount = table.mount_of(&place);
    let foreign = if file.was.uid == 0 && file.permissions.uid == 0 { 0 } else { FOREIGN };
    let attributes = restrictions(mount).1 | foreign | read_only(mount);
    let stage = Stage::attached()?;
    let seen = if file.was.is_directory() {
        if table.points().iter().any(|point| point.at != file.path && point.at.starts_with(&file.path)) {
            return Err(Errno::BUSY.into());
        }
        if !file.only.is_empty() {
            return names_only(stage, &itself, file, attributes, &place);
        }
        let seen = directory(&stage, &itself, file, attributes)?;
        covered.push(Covered { path: file.path.clone(), itself });
        seen
    } else {
        copy(&stage, &itself, file, attributes)?
    };
    stage.detach()?;
    attach(&seen, &place)
}

/// What is at a path outside: an overlay of ours shows files under other numbers.
fn itself(covered: &[Covered], path: &Path, place: &OwnedFd) -> io::Result<OwnedFd> {
    let above = covered.iter().filter(|one| path != one.path && path.starts_with(&one.path));
    let Some(nearest) = above.max_by_key(|one| one.path.as_os_str().len()) else { return place.try_clone() };
    let below = path.strip_prefix(&nearest.path).map_err(io::Error::other)?;
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    Ok(openat2(&nearest.itself, below, PLACE | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

fn read_only(mount: Option<&MountPoint>) -> u64 {
    let is_so = |mount: &MountPoint| mount.has_option("ro") || mount.super_options.split(',').any(|one| one == "ro");
    if mount.is_some_and(is_so) { libc::MOUNT_ATTR_RDONLY } else { 0 }
}

/// A tmpfs over the root directory: reached by its descriptor, and by no path.
struct Stage {
    root: OwnedFd,
}

impl Stage {
    fn attached() -> io::Result<Self> {
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "source", "slowpath")?;
        fsconfig_set_string(&context, "mode", "0700")?;
        fsconfig_create(&context)?;
        let restricting = MountAttrFlags::from_bits_retain(STORE as u32);
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, restricting)?;
        let over = openat(CWD, "/", PLACE | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        attach(&root, &over)?;
        Ok(Self { root })
    }

    fn detach(self) -> io::Result<()> {
        Ok(umount2(own_path(&self.root).as_str(), MntFlags::MNT_DETACH)?)
    }

    fn directory(&self, name: &str) -> io::Result<OwnedFd> {
        mkdirat(&self.root, name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.root, name, flags, Mode::empty())?)
    }
}

/// A mount of an overlay over the directory.
fn directory(stage: &Stage, itself: &OwnedFd, file: &SeenFile, attributes: u64) -> io::Result<OwnedFd> {
    let (upper, work) = (stage.directory("upper")?, stage.directory("work")?);
    for name in &file.without {
        // A whiteout (Documentation/filesystems/overlayfs.rst).
        mknodat(&upper, name.as_os_str(), FileType::CharacterDevice, Mode::empty(), 0)?;
    }
    dress(&upper, itself, file, 0o7777)?;
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "slowpath")?;
    for (option, layer) in [("lowerdir", itself), ("upperdir", &upper), ("workdir", &work)] {
        // By descriptor no byte of a path needs an escape.
        fsconfig_set_string(&context, option, own_path(layer))?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::from_bits_retain(attributes as u32);
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Covers the directory by an empty one, in which these names alone are mounted again, as they are.
fn names_only(stage: Stage, itself: &OwnedFd, file: &SeenFile, attributes: u64, place: &OwnedFd) -> io::Result<()> {
    let made = stage.directory("only")?;
    let mut kept = Vec::new();
    for name in &file.only {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let found = match openat2(itself, name.as_os_str(), PLACE | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(found) => found,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno.into()),
        };
        match FileType::from_raw_mode(fstat(&found)?.st_mode) {
            FileType::Directory => mkdirat(&made, name.as_os_str(), Mode::RWXU)?,
            FileType::RegularFile => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                drop(openat(&made, name.as_os_str(), flags, Mode::RUSR)?);
            }
            _ => continue,
        }
        kept.push((name, found));
    }
    dress(&made, itself, file, 0o7777)?;
    let seen = clone(&made, false)?;
    sys::set_mount_attributes(&seen, attributes, STORE & !attributes)?;
    stage.detach()?;
    attach(&seen, place)?;
    for (name, found) in kept {
        let over = openat(&seen, name.as_os_str(), PLACE | OFlags::CLOEXEC, Mode::empty())?;
        attach(&clone(&found, false)?, &over)?;
    }
    Ok(())
}

/// A mount of a copy of the file.
fn copy(stage: &Stage, itself: &OwnedFd, file: &SeenFile, attributes: u64) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    // It was seen to be a regular file.
    let mut source = File::from(openat(CWD, own_path(itself), flags, Mode::empty())?);
    if source.metadata()?.len() > MOST_COPIED_BYTES {
        return Err(Errno::FBIG.into());
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut made = File::from(openat(&stage.root, "file", flags, Mode::RUSR | Mode::WUSR)?);
    // More than it was by then: its owner makes it grow.
    let copied = io::copy(&mut io::Read::take(&mut source, MOST_COPIED_BYTES), &mut made)?;
    if copied != source.metadata()?.len() {
        return Err(Errno::STALE.into());
    }
    let made = OwnedFd::from(made);
    dress(&made, itself, file, 0o1777)?;
    let seen = clone(&made, false)?;
    sys::set_mount_attributes(&seen, attributes, STORE & !attributes)?;
    Ok(seen)
}

/// Gives what is seen its permissions and times. Owner first, since changing it clears bits; times last, since all changes them.
fn dress(made: &OwnedFd, itself: &OwnedFd, file: &SeenFile, bits: u32) -> io::Result<()> {
    let permissions = &file.permissions;
    fchown(made, Some(Uid::from_raw(permissions.uid)), Some(Gid::from_raw(permissions.gid)))?;
    fchmod(made, Mode::from_raw_mode(permissions.mode & bits))?;
    if let Some(acl) = &permissions.acl {
        fsetxattr(made, "system.posix_acl_access", acl, XattrFlags::empty())?;
    }
    for name in KEPT {
        let mut value = vec![0; LONGEST];
        // Through the link in /proc, for a mere place has no attributes; a file system without them is none to copy from.
        let own = format!("/proc/self/fd/{}", itself.as_raw_fd());
        if let Ok(length) = getxattr(own.as_str(), name, value.as_mut_slice()) {
            let set = fsetxattr(made, name, value.get(..length).unwrap_or_default(), XattrFlags::empty());
            // A default list decides who may use what is made there; a label that a tmpfs does not take decides nothing.
            if name.starts_with("system.") {
                set?;
            }
        }
    }
    let was = fstat(itself)?;
    let time = |seconds: i64, nanoseconds: i64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let modified = match file.modified {
        Some(seconds) => time(seconds, 0),
        None => time(was.st_mtime, was.st_mtime_nsec as i64),
    };
    futimens(
        made,
        &Timestamps { last_access: time(was.st_atime, was.st_atime_nsec as i64), last_modification: modified },
    )?;
    Ok(())
}
