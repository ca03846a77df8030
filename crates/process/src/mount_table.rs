//! The mounts of this thread's namespace, and opening files among them without a surprise: no symbolic link, no mount that
//! is not in the table, and no file system whose answers come from a user's process or another machine.
//!
//! Root that looks up a path in a FUSE file system waits for the user who serves it, for ever if that user wants. A file
//! system is known by its line in mountinfo(5), before anything in it is touched.

use crate::trusted_path::{PLAIN, again, complete};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    /// Its number, also `stx_mnt_id` of files in it.
    pub id: u64,
    /// The mount on which it is mounted.
    pub parent: u64,
    /// Where it is mounted. Any byte may stand in the name.
    pub at: PathBuf,
    /// Per-mount options, such as `rw,nosuid,relatime`.
    pub options: String,
    /// File-system type.
    pub kind: String,
    /// Options of the superblock, for cgroup hierarchies the controllers.
    pub super_options: String,
}

/// File systems whose files come over a network; `autofs` mounts what was asked for.
const REMOTE: &[&str] = &[
    "9p", "afs", "autofs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "kafs", "lustre", "ncpfs", "nfs", "nfs4",
    "smb3", "smbfs", "virtiofs",
];

impl MountPoint {
    /// Whether reading there can wait for a user's process or another machine.
    pub fn may_never_answer(&self) -> bool {
        // fuse.sshfs and the like carry the name of their server.
        self.kind.starts_with("fuse.") || REMOTE.contains(&self.kind.as_str())
    }

    /// Whether an option of the mount (not of its file system) is set.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.split(',').any(|one| one == option)
    }
}

/// Why a path was not opened.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// It lies which may never answer.
    #[error("it lies on {0}, which may never answer")]
    MayNeverAnswer(String),
    /// A symbolic link is in the way.
    #[error("a component of its path is a symbolic link")]
    Link,
    /// Something was mounted on the way after the table was read.
    #[error("something was mounted there in the meantime")]
    MountedMeanwhile,
    /// What the kernel says.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<NotOpened> for io::Error {
    fn from(problem: NotOpened) -> Self {
        match problem {
            NotOpened::MayNeverAnswer(_) => Self::from_raw_os_error(libc::EREMOTE),
            NotOpened::Link => Self::from_raw_os_error(libc::ELOOP),
            NotOpened::MountedMeanwhile => Self::from_raw_os_error(libc::EXDEV),
            NotOpened::Io(error) => error,
        }
    }
}

impl From<Errno> for NotOpened {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::LOOP => Self::Link,
            Errno::XDEV => Self::MountedMeanwhile,
            errno => Self::Io(errno.into()),
        }
    }
}

/// The mounts as they were when the table was read.
#[derive(Debug)]
pub struct MountTable {
    points: Vec<MountPoint>,
    by_id: HashMap<u64, usize>,
    by_parent: HashMap<u64, Vec<usize>>,
    root: (usize, Rc<OwnedFd>),
    open: HashMap<u64, Rc<OwnedFd>>,
}

impl MountTable {
    /// Reads the table of the calling thread's namespace.
    ///
    /// # Errors
    /// `/proc` is not there, or does not show the root directory's own mount.
    pub fn read() -> io::Result<Self> {
        let root = openat2(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), PLAIN)?;
        let points = MountPoint::all()?;
        let by_id: HashMap<u64, usize> = points.iter().enumerate().map(|(index, point)| (point.id, index)).collect();
        let mut by_parent: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, point) in points.iter().enumerate() {
            by_parent.entry(point.parent).or_default().push(index);
        }
        let index = by_id.get(&mount_of(&root)?).copied();
        let index = index.ok_or_else(|| io::Error::other("/proc/thread-self/mountinfo does not list the root"))?;
        Ok(Self { points, by_id, by_parent, root: (index, Rc::new(root)), open: HashMap::new() })
    }

    /// All mounts, in the order in which they were made.
    pub fn points(&self) -> &[MountPoint] {
        &self.points
    }

    /// The mount in which an open file lies.
    pub fn mount_of(&self, file: impl AsFd) -> Option<&MountPoint> {
        let id = mount_of(file).ok()?;
        self.by_id.get(&id).and_then(|index| self.points.get(*index))
    }

    /// Opens an absolute path of which no part is a symbolic link. A mount point itself is entered.
    ///
    /// # Errors
    /// See [`NotOpened`].
    pub fn open(&mut self, path: &Path, flags: OFlags) -> Result<OwnedFd, NotOpened> {
        let chain = self.chain(path)?;
        let (mut at, mut directory) = (self.points[self.root.0].at.clone(), Rc::clone(&self.root.1));
        for index in chain {
            directory = self.enter(&directory, &at, index)?;
            at.clone_from(&self.points[index].at);
        }
        let rest = path.strip_prefix(&at).map_err(|_| NotOpened::MountedMeanwhile)?;
        if !rest.as_os_str().is_empty() {
            return Ok(within(&directory, rest, flags, ResolveFlags::NO_XDEV)?);
        }
        // The mount's own root, which may be a file: the descriptor's own, opened once more.
        let own = format!("/proc/self/fd/{}", directory.as_raw_fd());
        Ok(openat(CWD, own, complete(flags) - OFlags::NOFOLLOW, Mode::empty())?)
    }

    /// The mounts that a lookup of `path` goes through, the root left out. A mount that another one hides has a parent that
    /// is not gone through.
    fn chain(&self, path: &Path) -> Result<Vec<usize>, NotOpened> {
        let (mut current, mut chain) = (self.root.0, Vec::new());
        loop {
            let here = &self.points[current];
            let below = self.by_parent.get(&here.id).into_iter().flatten().copied();
            let on_the_way = below.filter(|index| {
                let at = &self.points[*index].at;
                *index != current && path.starts_with(at) && at.starts_with(&here.at) && *at != here.at
            });
            let Some(next) = on_the_way.min_by_key(|index| self.points[*index].at.as_os_str().len()) else {
                return Ok(chain);
            };
            current = self.topmost(next);
            let point = &self.points[current];
            if point.may_never_answer() {
                return Err(NotOpened::MayNeverAnswer(point.kind.clone()));
            }
            chain.push(current);
            if chain.len() > self.points.len() {
                return Err(NotOpened::MountedMeanwhile);
            }
        }
    }

    /// Of mounts on top of each other at one place: the one that is seen.
    fn topmost(&self, mut index: usize) -> usize {
        for _ in 0..self.points.len() {
            let below = self.by_parent.get(&self.points[index].id).into_iter().flatten();
            let mut on_top = below.filter(|other| self.points[**other].at == self.points[index].at && **other != index);
            match on_top.next() {
                Some(top) => index = *top,
                None => break,
            }
        }
        index
    }

    /// The root of the mount `index`, from that of the one below, which is mounted at `from`.
    fn enter(&mut self, below: &OwnedFd, from: &Path, index: usize) -> Result<Rc<OwnedFd>, NotOpened> {
        let point = &self.points[index];
        if let Some(open) = self.open.get(&point.id) {
            return Ok(Rc::clone(open));
        }
        let rest = point.at.strip_prefix(from).map_err(|_| NotOpened::MountedMeanwhile)?;
        let (Some(parent), Some(name)) = (rest.parent(), rest.file_name()) else {
            return Err(NotOpened::MountedMeanwhile);
        };
        // Up to the mount point no mount is entered, and at it only the one of the table.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let parent = within(below, parent, OFlags::PATH | OFlags::DIRECTORY, ResolveFlags::NO_XDEV)?;
        let entered = within(&parent, Path::new(name), OFlags::PATH | OFlags::NOFOLLOW, ResolveFlags::empty())?;
        if mount_of(&entered)? != point.id {
            return Err(NotOpened::MountedMeanwhile);
        }
        let entered = Rc::new(entered);
        self.open.insert(point.id, Rc::clone(&entered));
        Ok(entered)
    }
}

/// Opens below a directory, without links and without a way out.
fn within(directory: &OwnedFd, path: &Path, flags: OFlags, more: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = PLAIN | ResolveFlags::BENEATH | more;
    again(|| openat2(directory, path, complete(flags), Mode::empty(), resolve))
}

/// `stx_mnt_id`, Linux 5.8.
fn mount_of(file: impl AsFd) -> io::Result<u64> {
    let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID)?;
    Ok(found.stx_mnt_id)
}

impl MountPoint {
    /// All mounts of the calling thread's namespace.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn all() -> io::Result<Vec<Self>> {
        Ok(Self::parse(&fs::read("/proc/thread-self/mountinfo")?))
    }

    /// Reads mountinfo(5), as bytes. A line that does not have the documented form is left out and takes no other with it.
    pub fn parse(text: &[u8]) -> Vec<Self> {
        text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
    }
}

fn parse_line(line: &[u8]) -> Option<MountPoint> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    let at = PathBuf::from(std::ffi::OsString::from_vec(unescape(fields.nth(2)?)));
    let options = String::from_utf8_lossy(fields.next()?).into_owned();
    // Optional fields (propagation) end with a lone '-'.
    fields.find(|field| *field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let super_options = String::from_utf8_lossy(fields.nth(1)?).into_owned();
    Some(MountPoint { id, parent, at, options, kind, super_options })
}

/// Undoes `\ooo`, by which the kernel writes space, tab, newline and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'\\'
            && tail.len() >= 3
            && let Some(byte) = tail[..3].iter().try_fold(0u32, |value, digit| match digit {
                b'0'..=b'7' => Some(value * 8 + u32::from(digit - b'0')),
                _ => None,
            })
        {
            bytes.push(byte as u8);
            rest = &tail[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileIdentity;
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    /// Runs `work` on a thread with mounts of its own, if we may.
    fn with_own_mounts(work: impl FnOnce() + Send) {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root can mount");
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS).unwrap();
                let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).unwrap();
                work();
            });
        });
    }

    fn tmpfs(at: &Path) {
        mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::MS_NOSUID, None::<&str>).unwrap();
    }

    #[test]
    fn mount_points_with_spaces_newlines_and_backslashes_are_read() {
        let text =
            b"36 35 98:0 /mnt1 /a\\040b\\012c\\134d rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n";
        assert_eq!(
            MountPoint::parse(text),
            [MountPoint {
                id: 36,
                parent: 35,
                at: "/a b\nc\\d".into(),
                options: "rw,noatime".into(),
                kind: "ext3".into(),
                super_options: "rw,errors=continue".into()
            }]
        );
    }

    #[test]
    fn a_line_that_is_cut_off_or_no_text_takes_no_other_with_it() {
        let text = b"36 35 98:0 /\n\xff\xff\xff\n7 1 0:4 / /\xfe\xff rw - tmpfs t rw\n1 2 3:4 / /x rw - tmpfs t rw";
        let points = MountPoint::parse(text);
        assert_eq!(points.len(), 2);
        assert_eq!(points[0].at.as_os_str().as_bytes(), b"/\xfe\xff");
    }

    #[test]
    fn file_systems_that_a_user_or_another_machine_serves_are_known_by_their_type() {
        let kinds = |kind: &str| MountPoint {
            id: 1,
            parent: 0,
            at: "/".into(),
            options: String::new(),
            kind: kind.into(),
            super_options: String::new(),
        };
        for kind in ["fuse", "fuseblk", "fuse.sshfs", "nfs", "nfs4", "cifs", "9p", "autofs"] {
            assert!(kinds(kind).may_never_answer(), "{kind}");
        }
        for kind in ["ext4", "btrfs", "tmpfs", "overlay", "xfs", "fusectl", "nfsd"] {
            assert!(!kinds(kind).may_never_answer(), "{kind}");
        }
    }

    #[test]
    fn a_file_is_opened_in_the_mount_that_is_seen_at_its_path_and_links_are_not_followed() {
        with_own_mounts(|| {
            let place = tempfile::tempdir().unwrap();
            let at = |name: &str| place.path().join(name);
            fs::create_dir_all(at("a/b")).unwrap();
            tmpfs(&at("a/b"));
            fs::write(at("a/b/file"), "hidden").unwrap();
            // On top of it all, and then once more at the very same place.
            tmpfs(&at("a"));
            tmpfs(&at("a"));
            fs::create_dir_all(at("a/b")).unwrap();
            fs::write(at("a/b/file"), "seen").unwrap();
            symlink("file", at("a/b/link")).unwrap();
            symlink("a", at("alias")).unwrap();
            let mut table = MountTable::read().unwrap();
            let file = table.open(&at("a/b/file"), OFlags::RDONLY).unwrap();
            let seen = FileIdentity::of(fs::File::open(at("a/b/file")).unwrap()).unwrap();
            assert_eq!(FileIdentity::of(&file).unwrap(), seen);
            assert!(table.mount_of(&file).unwrap().has_option("nosuid"));
            table.open(&at("a"), OFlags::PATH).unwrap();
            // A file can be a mount point too.
            fs::write(at("single"), "below").unwrap();
            let (from, none) = (at("a/b/file"), None::<&str>);
            mount(Some(&from), &at("single"), none, MsFlags::MS_BIND, none).unwrap();
            let mut later = MountTable::read().unwrap();
            let single = later.open(&at("single"), OFlags::RDONLY).unwrap();
            assert_eq!(FileIdentity::of(&single).unwrap(), seen);
            assert!(matches!(table.open(&at("a/b/link"), OFlags::RDONLY), Err(NotOpened::Link)));
            assert!(matches!(table.open(&at("alias/b/file"), OFlags::RDONLY), Err(NotOpened::Link)));
            assert!(matches!(table.open(Path::new("a/b"), OFlags::PATH), Err(NotOpened::MountedMeanwhile)));
        });
    }

    #[test]
    fn what_was_mounted_after_the_table_was_read_is_not_entered() {
        with_own_mounts(|| {
            let place = tempfile::tempdir().unwrap();
            let at = place.path().join("later");
            fs::create_dir(&at).unwrap();
            let mut table = MountTable::read().unwrap();
            table.open(&at, OFlags::PATH).unwrap();
            tmpfs(&at);
            assert!(matches!(table.open(&at, OFlags::PATH), Err(NotOpened::MountedMeanwhile)));
            MountTable::read().unwrap().open(&at, OFlags::PATH).unwrap();
        });
    }
}
