//! Removing directories that a user could have filled and changed: by descriptor, with the user's own rights.
//!
//! Root that removes by path removes whatever the user moved there. Here nothing is followed, no other mount is entered, the
//! directory is the very one that was made, and who removes has no more rights than the user.

use crate::trusted_path::FileIdentity;
use crate::{Credentials, close_all_but, drop_to, open_beneath};
use nix::sys::prctl::{set_dumpable, set_no_new_privs};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, geteuid};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, chmod, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::time::{Duration, Instant};

/// Directories inside each other, each of which takes a descriptor.
const DEEPEST: usize = 200;
/// How long a removal may take: some 100,000 files a second are removed here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Removes the directory `name` in `parent` with all that is in it, if it is the one that is meant. Whatever else stands
/// there by now is not touched, and no error: whoever could move the directory has it now.
///
/// # Errors
/// It holds a mount or is nested too deep, or the kernel refuses; part of it may then be gone.
pub fn remove_directory(parent: impl AsFd, name: &OsStr, meant: FileIdentity) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let directory = match open_beneath(&parent, name, flags) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => return Ok(()),
        opened => opened?,
    };
    if FileIdentity::of(&directory)? != meant {
        return Ok(());
    }
    let directory = listable(&directory)?;
    empty(&directory, DEEPEST)?;
    drop(directory);
    remove_empty_directory(parent, name)
}

/// Removes the directory `name` in `parent` if it is empty; one that is gone is no error.
///
/// # Errors
/// It is not empty, no directory, or the kernel refuses.
pub fn remove_empty_directory(parent: impl AsFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) | Ok(()) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The same as [`remove_directory`] in a child process that has taken on `user` for good, so that nothing is removed that the user could not
/// remove. Without privilege, and for root's own directories, in this very process.
///
/// # Errors
/// As there; that the child could not become the user; or that it took longer than a minute.
pub fn remove_directory_as(user: &Credentials, parent: impl AsFd, name: &OsStr, meant: FileIdentity) -> io::Result<()> {
    if !geteuid().is_root() || user.uid == 0 {
        return remove_directory(parent, name, meant);
    }
    // SAFETY: the child works on copies of this thread's memory only, and ends without running destructors.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let result = become_user(user, &parent).and_then(|()| remove_directory(parent, name, meant));
            let code = result.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EPERM));
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => wait(child),
    }
}

/// Of the child: has nothing of root's from now on, neither a descriptor but this one nor a way in for the user.
fn become_user(user: &Credentials, kept: &impl AsFd) -> io::Result<()> {
    close_all_but(&[kept.as_fd().as_raw_fd()])?;
    drop_to(user).map_err(io::Error::other)?;
    set_dumpable(false)?;
    Ok(set_no_new_privs()?)
}

/// An errno is an exit code: the largest is 133 (include/uapi/asm-generic/errno.h).
fn wait(child: Pid) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(100);
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
            Ok(WaitStatus::Exited(_, errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Ok(WaitStatus::StillAlive) => {}
            Ok(status) => return Err(io::Error::other(format!("the process that removes ended with {status:?}"))),
            Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if Instant::now() > end {
            let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL);
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Opens a directory for listing. One that its owner has closed to everybody is opened up first, which only its owner can.
fn listable(found: &OwnedFd) -> io::Result<OwnedFd> {
    let open = || openat(found, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    match open() {
        Err(Errno::ACCESS) => {
            // The descriptor's own file: fchmod(2) takes no descriptor of this kind.
            chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)?;
            Ok(open()?)
        }
        opened => Ok(opened?),
    }
}

fn empty(directory: &OwnedFd, levels: usize) -> io::Result<()> {
    // The first trouble is reported, and the rest is removed all the same.
    let mut trouble = None;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if let Err(error) = remove_entry(directory, name, entry.file_type(), levels) {
            trouble.get_or_insert(error);
        }
    }
    trouble.map_or(Ok(()), Err)
}

fn remove_entry(directory: &OwnedFd, name: &std::ffi::CStr, kind: FileType, levels: usize) -> io::Result<()> {
    if kind != FileType::Directory {
        match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Some file systems do not say what an entry is; a directory that others made closed is opened up below.
            Err(Errno::ISDIR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let levels = levels.checked_sub(1).ok_or_else(|| io::Error::from_raw_os_error(libc::ELOOP))?;
    let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes());
    let below = listable(&open_beneath(directory, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW)?)?;
    let emptied = empty(&below, levels);
    match unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => emptied.and(Err(errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NOBODY;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::Path;

    fn identity(path: &Path) -> FileIdentity {
        FileIdentity::of(fs::File::open(path).unwrap()).unwrap()
    }

    #[test]
    fn a_tree_is_removed_and_what_its_links_lead_to_stays() {
        let place = tempfile::tempdir().unwrap();
        let (tree, victim) = (place.path().join("tree"), place.path().join("victim"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("precious"), "x").unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        symlink(&victim, tree.join("a/link")).unwrap();
        let parent = fs::File::open(place.path()).unwrap();
        remove_directory(&parent, "tree".as_ref(), identity(&tree)).unwrap();
        assert!(!tree.exists() && victim.join("precious").exists());
        remove_directory(&parent, "tree".as_ref(), identity(&victim)).unwrap();
    }

    #[test]
    fn a_link_or_another_directory_at_the_name_is_not_removed() {
        let place = tempfile::tempdir().unwrap();
        let (made, victim) = (place.path().join("made"), place.path().join("victim"));
        fs::create_dir(&made).unwrap();
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("precious"), "x").unwrap();
        let meant = identity(&made);
        let parent = fs::File::open(place.path()).unwrap();
        fs::rename(&made, place.path().join("moved")).unwrap();
        symlink(&victim, &made).unwrap();
        remove_directory(&parent, "made".as_ref(), meant).unwrap();
        assert!(fs::symlink_metadata(&made).is_ok() && victim.join("precious").exists());
        fs::remove_file(&made).unwrap();
        fs::rename(&victim, &made).unwrap();
        remove_directory(&parent, "made".as_ref(), meant).unwrap();
        assert!(made.join("precious").exists());
    }

    #[test]
    fn as_a_user_only_what_the_user_could_remove_goes_closed_directories_included() {
        if !geteuid().is_root() {
            println!("skipped: only root can become another user");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let nobody = Credentials { uid: NOBODY, gid: NOBODY, groups: Vec::new() };
        let parent = fs::File::open(place.path()).unwrap();
        let make = |name: &str, uid: u32| {
            let path = place.path().join(name);
            fs::create_dir_all(path.join("closed/inner")).unwrap();
            for part in ["", "closed", "closed/inner"] {
                chown(path.join(part), Some(uid), Some(uid)).unwrap();
            }
            fs::set_permissions(path.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
            path
        };
        let own = make("own", NOBODY);
        remove_directory_as(&nobody, &parent, "own".as_ref(), identity(&own)).unwrap();
        assert!(!own.exists());
        let roots = make("roots", 0);
        assert!(remove_directory_as(&nobody, &parent, "roots".as_ref(), identity(&roots)).is_err());
        assert!(roots.join("closed/inner").exists());
    }
}
