//! Opening paths that another user could change, without ever following what that user put there.
//!
//! A path is looked up once, by a call that follows no symbolic link ([`open_beneath`]), or whose every component was seen
//! to be changeable by root and ourselves only ([`trusted_directory`], [`trusted_file`]). What follows is done with the descriptor.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstat, mkdirat, openat2, readlinkat, statx,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// `S_ISVTX` and write permission for group and others, inode(7).
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Which file it is, whatever its name. A number is used again after the last link and descriptor are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// Inode.
    pub inode: u64,
}

impl FileIdentity {
    /// That of an open file. Asks no server of a network or user-space file system.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::INO)?;
        Ok(Self { major: found.stx_dev_major, minor: found.stx_dev_minor, inode: found.stx_ino })
    }
}

/// What no lookup of ours does.
pub(crate) const PLAIN: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// Opens `relative` below `directory`: no symbolic link on the way, no `..` that leads out, no other mount.
///
/// # Errors
/// `ELOOP` at a symbolic link, `EXDEV` where the path leaves the directory or its file system, or what open(2) says.
pub fn open_beneath(directory: impl AsFd, relative: impl AsRef<Path>, flags: OFlags) -> io::Result<OwnedFd> {
    create_beneath(directory, relative, flags, 0)
}

/// The same with the mode of a file that is created.
pub(crate) fn create_beneath(
    directory: impl AsFd,
    relative: impl AsRef<Path>,
    flags: OFlags,
    mode: u32,
) -> io::Result<OwnedFd> {
    let resolve = PLAIN | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
    let flags = complete(flags);
    Ok(again(|| openat2(&directory, relative.as_ref(), flags, Mode::from_raw_mode(mode), resolve))?)
}

/// With what every descriptor of ours has. openat2(2) takes no flag that `O_PATH` ignores.
pub(crate) fn complete(flags: OFlags) -> OFlags {
    let terminal = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NOCTTY };
    flags | OFlags::CLOEXEC | terminal
}

/// openat2(2) gives `EAGAIN` when something was renamed or mounted while it looked for `..` or a mount: ask again, a few times.
pub(crate) fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    for _ in 0..16 {
        match call() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    call()
}

/// Opens a directory of which every part of the path belongs to root or to us, and can be changed by nobody else (a
/// directory with the sticky bit counts: others cannot replace what is ours in it). Symbolic links are refused.
///
/// # Errors
/// `PermissionDenied` with the part that others can change, or what open(2) says.
pub fn trusted_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = openat2(CWD, "/", flags, Mode::empty(), PLAIN)?;
    require_trusted(&directory, Path::new("/"))?;
    let mut seen = Path::new("/").to_path_buf();
    for component in path.components() {
        match component {
            Component::RootDir => continue,
            Component::Normal(name) => {
                seen.push(name);
                // A mount may be entered: only root mounts where only root can write.
                let resolve = PLAIN | ResolveFlags::BENEATH;
                directory = again(|| openat2(&directory, name, flags, Mode::empty(), resolve))?;
            }
            _ => return Err(io::Error::other(format!("{} is no plain absolute path", path.display()))),
        }
        require_trusted(&directory, &seen)?;
    }
    if seen != path {
        return Err(io::Error::other(format!("{} is no plain absolute path", path.display())));
    }
    Ok(directory)
}

/// A file that only root can change, by a path of which only root can change a part.
#[derive(Debug)]
pub struct TrustedFile {
    /// The checked file itself (`O_PATH`), whatever happens to its name.
    pub file: OwnedFd,
    /// Its path without a link: only root can make it lead elsewhere.
    pub path: PathBuf,
}

impl TrustedFile {
    /// Its content, so many bytes at most.
    ///
    /// # Errors
    /// It is longer, or cannot be read.
    pub fn read(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = fs::File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes"))),
            false => Ok(bytes),
        }
    }
}

/// Symbolic links that one path may lead through, as path_resolution(7) has it.
const MOST_LINKS: usize = 40;

/// Opens a file that only root can change, component by component: each directory on the way is one of [`trusted_directory`]'s, and each link
/// root's, so that nobody else decides where the path leads, now or later.
///
/// # Errors
/// `PermissionDenied` with the part that others can change, `ELOOP` after 40 links, or what the kernel says.
pub fn trusted_file(path: &Path) -> io::Result<TrustedFile> {
    let path = std::path::absolute(path)?;
    let denied = |what: &Path, why: &str| {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", what.display())))
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = openat2(CWD, "/", flags | OFlags::DIRECTORY, Mode::empty(), PLAIN)?;
    require_trusted(&root, Path::new("/"))?;
    // What is left of the path, the next component last; and the directories that it has led through, by their names.
    let backwards = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    let mut left = backwards(&path);
    let mut passed: Vec<(OsString, OwnedFd)> = Vec::new();
    let mut links = 0;
    while let Some(name) = left.pop() {
        match name.as_bytes() {
            b"/" => passed.clear(),
            b"." => {}
            b".." => drop(passed.pop()),
            _ => {
                let seen: PathBuf =
                    [OsStr::new("/")].into_iter().chain(passed.iter().map(|(name, _)| name.as_os_str())).collect();
                let seen = seen.join(&name);
                let directory = passed.last().map_or(&root, |(_, directory)| directory);
                let resolve = PLAIN | ResolveFlags::BENEATH;
                let opened = again(|| openat2(directory, &name, flags, Mode::empty(), resolve))?;
                let found = fstat(&opened)?;
                match FileType::from_raw_mode(found.st_mode) {
                    FileType::Directory => {
                        require_trusted(&opened, &seen)?;
                        passed.push((name, opened));
                    }
                    FileType::Symlink if found.st_uid == 0 => {
                        links += 1;
                        if links > MOST_LINKS {
                            return Err(Errno::LOOP.into());
                        }
                        let target = readlinkat(&opened, "", Vec::new())?;
                        left.extend(backwards(Path::new(OsStr::from_bytes(target.to_bytes()))));
                    }
                    FileType::RegularFile if left.is_empty() => {
                        return match found.st_uid == 0 && found.st_mode & WRITABLE_BY_OTHERS == 0 {
                            true => Ok(TrustedFile { file: opened, path: seen }),
                            false => denied(&seen, "can be changed by other users"),
                        };
                    }
                    FileType::Symlink => return denied(&seen, "is a symbolic link of another user"),
                    _ => return denied(&seen, "is no regular file"),
                }
            }
        }
    }
    denied(&path, "is no regular file")
}

/// Opens a directory by an absolute path that holds no symbolic link, whoever could have put one there.
///
/// # Errors
/// `ELOOP` at a symbolic link, or what open(2) says.
pub fn plain_directory(path: &Path) -> io::Result<OwnedFd> {
    open_plain(path, OFlags::PATH | OFlags::DIRECTORY)
}

/// The same of a file of any kind.
///
/// # Errors
/// `ELOOP` at a symbolic link, or what open(2) says.
pub fn open_plain(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    if !path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_))) || !path.is_absolute() {
        return Err(io::Error::other(format!("{} is no plain absolute path", path.display())));
    }
    Ok(again(|| openat2(CWD, path, complete(flags), Mode::empty(), PLAIN))?)
}

fn require_trusted(directory: &OwnedFd, path: &Path) -> io::Result<()> {
    let found = fstat(directory)?;
    let ours = found.st_uid == 0 || found.st_uid == rustix_euid();
    if !ours || (found.st_mode & WRITABLE_BY_OTHERS != 0 && found.st_mode & STICKY == 0) {
        let why = format!("{} can be changed by other users", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

pub(crate) fn rustix_euid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Makes a new directory of ours, mode 0700, in `parent`, under a name that nobody can foresee. `announce` gets the name
/// before it exists. Returns the directory's descriptor.
///
/// # Errors
/// The directory cannot be made, or what stands there is not what was made.
pub fn fresh_directory(
    parent: impl AsFd,
    prefix: &str,
    mut announce: impl FnMut(&OsStr) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let mut random = [0u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{prefix}{digits}");
    announce(OsStr::from_bytes(name.as_bytes()))?;
    new_directory(parent, OsStr::from_bytes(name.as_bytes()))
}

/// Makes the directory `name` of ours in `parent`, mode 0700, and returns its descriptor: to be handed to another user by
/// that (fchown), and never by its path.
///
/// # Errors
/// There is something of that name already, it cannot be made, or what stands there is not what was made.
pub fn new_directory(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    mkdirat(&parent, name, Mode::RWXU)?;
    let made = open_beneath(&parent, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let found = fstat(&made)?;
    if found.st_uid != rustix_euid() || found.st_mode & 0o7777 & !0o2000 != 0o700 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} was replaced while it was made", name.display()),
        ));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn errno_of<T>(result: io::Result<T>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn no_link_and_no_way_out_is_followed_below_a_directory() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("real")).unwrap();
        fs::write(place.path().join("real/file"), "x").unwrap();
        symlink("real", place.path().join("link")).unwrap();
        symlink("file", place.path().join("real/alias")).unwrap();
        let directory = fs::File::open(place.path()).unwrap();
        let open = |path: &str| open_beneath(&directory, path, OFlags::RDONLY);
        open("real/file").unwrap();
        assert_eq!(errno_of(open("link/file")), Some(libc::ELOOP));
        assert_eq!(errno_of(open("real/alias")), Some(libc::ELOOP));
        assert_eq!(errno_of(open("../x")), Some(libc::EXDEV));
        assert_eq!(errno_of(open("/etc/passwd")), Some(libc::EXDEV));
    }

    #[test]
    fn a_directory_of_which_others_can_change_a_part_is_not_trusted() {
        let place = tempfile::tempdir().unwrap();
        let (outer, inner) = (place.path().join("outer"), place.path().join("outer/inner"));
        fs::create_dir_all(&inner).unwrap();
        trusted_directory(&inner).unwrap();
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = trusted_directory(&inner).unwrap_err();
        assert!(refused.to_string().contains("outer can be changed"), "{refused}");
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o1777)).unwrap();
        trusted_directory(&inner).unwrap();
        symlink(&inner, place.path().join("link")).unwrap();
        assert_eq!(errno_of(trusted_directory(&place.path().join("link"))), Some(libc::ELOOP));
        assert!(trusted_directory(Path::new("tmp")).is_err());
    }

    #[test]
    fn a_trusted_file_is_reached_through_roots_links_and_through_nobody_elses() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root has files that are root's");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        ["real", "theirs"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        fs::write(at("real/file"), "root's").unwrap();
        std::os::unix::fs::chown(at("theirs"), Some(65534), Some(65534)).unwrap();
        symlink("../real/./file", at("real/relative")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        for name in ["real/file", "real/relative", "link/relative", "link/../real/file"] {
            let trusted = trusted_file(&at(name)).unwrap();
            assert_eq!(trusted.path, fs::canonicalize(at("real/file")).unwrap(), "{name}");
            assert_eq!(trusted.read(6).unwrap(), b"root's", "{name}");
            assert!(trusted.read(5).is_err(), "{name}");
        }
        // It leads to a file of root's at this moment, and its owner makes it lead elsewhere in the next.
        symlink(at("real"), at("theirs/bin")).unwrap();
        symlink(at("real/file"), at("theirs/file")).unwrap();
        for name in ["theirs/bin/file", "theirs/file", "theirs/../real/file"] {
            let refused = trusted_file(&at(name)).unwrap_err();
            assert!(refused.to_string().contains("theirs can be changed"), "{name}: {refused}");
        }
        fs::write(at("real/open"), "").unwrap();
        fs::set_permissions(at("real/open"), fs::Permissions::from_mode(0o666)).unwrap();
        symlink("loop", at("loop")).unwrap();
        assert!(trusted_file(&at("real/open")).unwrap_err().to_string().contains("open can be changed"));
        assert_eq!(errno_of(trusted_file(&at("loop"))), Some(libc::ELOOP));
        assert!(trusted_file(&at("real")).is_err() && trusted_file(&at("none")).is_err());
        // What was checked is what is read, whatever its name is by then.
        let trusted = trusted_file(&at("real/file")).unwrap();
        fs::rename(at("real/open"), at("real/file")).unwrap();
        assert_eq!(trusted.read(100).unwrap(), b"root's");
    }

    #[test]
    fn a_plain_directory_is_reached_through_no_link() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("real")).unwrap();
        symlink("real", place.path().join("link")).unwrap();
        plain_directory(&place.path().join("real")).unwrap();
        assert_eq!(errno_of(plain_directory(&place.path().join("link"))), Some(libc::ELOOP));
        assert!(plain_directory(Path::new("tmp")).is_err() && plain_directory(Path::new("/tmp/..")).is_err());
    }

    #[test]
    fn a_fresh_directory_is_ours_alone_and_announced_before_it_exists() {
        let place = tempfile::tempdir().unwrap();
        let parent = fs::File::open(place.path()).unwrap();
        let mut said = None;
        let made = fresh_directory(&parent, "x-", |name| {
            said = Some((name.to_owned(), place.path().join(name).exists()));
            Ok(())
        });
        let (name, existed) = said.unwrap();
        assert!(!existed && name.len() == 2 + 32);
        let there = fs::File::open(place.path().join(name)).unwrap();
        assert_eq!(FileIdentity::of(made.unwrap()).unwrap(), FileIdentity::of(there).unwrap());
    }
}
