//! A file whose permissions are changed for a fix: opened without following a link and without being read, and changed by one call on
//! that descriptor.
//!
//! Root does not look a path up where a user's process or another machine would have to answer (FUSE, NFS): it might wait for ever.
//!
//! Anybody may be able to rename what is at the path, so nothing is decided by the path: device, inode, owner and group of what was opened
//! are compared with the record, and the descriptor is what is changed.

use super::error::ApplyError;
use super::file_version::FileVersion;
use super::permissions::PermissionChange;
use super::place::path_of;
use crate::treatment::FilePermissions;
use rustix::fs::{Mode, OFlags, XattrFlags, chmod, fstat, getxattr, setxattr};
use rustix::io::Errno;
use slowpath_process::{FileIdentity, MountTable, NotOpened, open_plain};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// The extended attribute of a list, and the longest value of any (`XATTR_SIZE_MAX`, include/uapi/linux/limits.h).
const ACL: &str = "system.posix_acl_access";
const LONGEST: usize = 65_536;

/// What is found at the path of a change.
///
/// # Errors
/// It cannot be looked at.
pub fn look(change: &PermissionChange) -> Result<FileVersion, ApplyError> {
    match opened(change) {
        Ok((_, there)) => Ok(change.find(Some(&there))),
        Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(FileVersion::Other),
            _ => Err(ApplyError::unusable(path_of(&change.path), error)),
        },
    }
}

/// Gives a file the permissions of the fix.
///
/// # Errors
/// Another file is there, it has not the permissions of before, or the kernel refuses.
pub fn apply(change: &PermissionChange) -> Result<(), ApplyError> {
    set(change, &change.before, &change.after)
}

/// Gives a file the permissions of before.
///
/// # Errors
/// Another file is there, it has not the permissions of the fix, or the kernel refuses.
pub fn restore(change: &PermissionChange) -> Result<(), ApplyError> {
    set(change, &change.after, &change.before)
}

fn set(change: &PermissionChange, from: &FilePermissions, to: &FilePermissions) -> Result<(), ApplyError> {
    let done = opened(change).and_then(|(file, there)| {
        if change.find(Some(&there)) == FileVersion::Other || there.before != *from {
            return Err(io::Error::other("somebody changes it at this moment"));
        }
        replace(&file, from, to)?;
        match permissions(&file)? == *to {
            true => Ok(()),
            false => Err(io::Error::other("the file system did not apply the permissions")),
        }
    });
    done.map_err(|error| ApplyError::unusable(path_of(&change.path), error))
}

/// By one call: a list holds the bits of the mode too (acl(5), "Correspondence between ACL entries and file permission bits").
fn replace(file: &OwnedFd, from: &FilePermissions, to: &FilePermissions) -> io::Result<()> {
    // A descriptor that opened nothing is changed by way of its link.
    let link = link(file);
    match &to.acl {
        Some(acl) if from.acl != to.acl => setxattr(&link, ACL, acl, XattrFlags::REPLACE)?,
        _ => chmod(&link, Mode::from_raw_mode(to.mode & 0o7777))?,
    }
    // On the disk before the record says so; what may not be read waits for the file system.
    if let Ok(readable) = File::open(&link) {
        let _ = readable.sync_all();
    }
    Ok(())
}

fn link(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    if !nix::unistd::geteuid().is_root() {
        return open_plain(path, flags);
    }
    MountTable::read()?.open(path, flags).map_err(|problem| match problem {
        NotOpened::MayNeverAnswer(_) => io::Error::other(format!("{problem}: the user of the files can do it")),
        problem => problem.into(),
    })
}

/// The file at the path of a change, and what it is now: its permissions as those of before.
fn opened(change: &PermissionChange) -> io::Result<(OwnedFd, PermissionChange)> {
    let file = open(&path_of(&change.path))?;
    let found = fstat(&file)?;
    let FileIdentity { major, minor, inode } = FileIdentity::of(&file)?;
    let before = permissions(&file)?;
    let there = PermissionChange {
        identity: (major, minor, inode),
        uid: found.st_uid,
        gid: found.st_gid,
        before,
        ..change.clone()
    };
    Ok((file, there))
}

fn permissions(file: &OwnedFd) -> io::Result<FilePermissions> {
    let mut value = vec![0; LONGEST];
    let acl = match getxattr(link(file), ACL, value.as_mut_slice()) {
        Ok(length) => Some(value.get(..length).unwrap_or_default().to_vec()),
        // None, or on a file system without lists.
        Err(Errno::NODATA | Errno::OPNOTSUPP) => None,
        Err(errno) => return Err(errno.into()),
    };
    Ok(FilePermissions { mode: fstat(file)?.st_mode, acl })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::treatment::TreatedFile;
    use std::collections::BTreeSet;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn change(path: &Path, after: u32) -> PermissionChange {
        let file = open_plain(path, OFlags::PATH).unwrap();
        let FileIdentity { major, minor, inode } = FileIdentity::of(&file).unwrap();
        let before = permissions(&file).unwrap();
        let found = fstat(&file).unwrap();
        let kind = before.mode & !0o7777;
        let treated = TreatedFile {
            path: path.as_os_str().into(),
            identity: (major, minor, inode),
            uid: found.st_uid,
            gid: found.st_gid,
            after: FilePermissions { mode: kind | after, acl: before.acl.clone() },
            before,
            only: BTreeSet::new(),
        };
        PermissionChange::of(&treated, found.st_uid).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn permissions_are_set_and_restored_and_the_time_of_the_content_stays() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let modified = std::fs::metadata(&path).unwrap().mtime_nsec();
        let change = change(&path, 0o604);
        assert_eq!(look(&change).unwrap(), FileVersion::Before);
        apply(&change).unwrap();
        assert_eq!((look(&change).unwrap(), mode(&path)), (FileVersion::After, 0o604));
        // Set already.
        assert!(apply(&change).is_err());
        restore(&change).unwrap();
        assert_eq!((mode(&path), std::fs::metadata(&path).unwrap().mtime_nsec()), (0o600, modified));
    }

    #[test]
    fn another_file_a_link_and_none_are_left_alone() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("f"), "x").unwrap();
        std::fs::write(at("secret"), "x").unwrap();
        for name in ["f", "secret"] {
            std::fs::set_permissions(at(name), PermissionsExt::from_mode(0o600)).unwrap();
        }
        let change = change(&at("f"), 0o604);
        std::fs::rename(at("f"), at("away")).unwrap();
        assert_eq!(look(&change).unwrap(), FileVersion::Other);
        symlink(at("secret"), at("f")).unwrap();
        assert_eq!(look(&change).unwrap(), FileVersion::Other);
        assert!(apply(&change).is_err());
        std::fs::remove_file(at("f")).unwrap();
        std::fs::hard_link(at("secret"), at("f")).unwrap();
        assert_eq!(look(&change).unwrap(), FileVersion::Other);
        assert!(apply(&change).is_err());
        assert_eq!((mode(&at("secret")), mode(&at("away"))), (0o600, 0o600));
    }

    #[test]
    fn root_does_not_wait_for_a_file_system_that_never_answers() {
        use nix::mount::{MsFlags, mount};
        use nix::sched::{CloneFlags, unshare};
        use std::{fs, sync::mpsc, thread, time::Duration};
        if !nix::unistd::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            println!("skipped: FUSE needs root and /dev/fuse");
            return;
        }
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let served = place.path().join("served");
        fs::create_dir(&served).unwrap();
        fs::write(served.join("f"), "x").unwrap();
        let change = change(&served.join("f"), 0o604);
        let (sender, receiver) = mpsc::channel();
        let server = fs::File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server.as_raw_fd());
        // In mounts of this thread alone.
        let worker = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS).unwrap();
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            mount(Some("fuse"), &served, Some("fuse"), MsFlags::empty(), Some(options.as_str())).unwrap();
            sender.send((look(&change).map_err(|error| error.to_string()), apply(&change).is_err()))
        });
        let answer = receiver.recv_timeout(Duration::from_secs(20));
        // Its server is gone: whoever waits goes on.
        drop(server);
        worker.join().unwrap().unwrap();
        let (looked, is_refused) = answer.expect("it waited");
        assert!(looked.unwrap_err().contains("may never answer") && is_refused);
    }
}
