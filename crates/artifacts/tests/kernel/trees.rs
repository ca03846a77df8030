//! Random trees of files: modes, owners, groups and lists.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use rand::{Rng, RngExt};
use slowpath_artifacts::access::{Acl, AclEntry, AclTag, Change};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Users and groups that own files and are asked about.
pub const IDS: [u32; 5] = [0, 1000, 1001, 2000, 65534];

/// `MS_NOSYMFOLLOW`, include/uapi/linux/mount.h, Linux 5.10.
const NO_SYMLINK_FOLLOW: MsFlags = MsFlags::from_bits_retain(256);

/// How long a child of another test may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a tree lies.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Disk,
    Tmpfs,
    ReadOnly,
    ReadOnlyFileSystem,
    NoExec,
    NoSymlinkFollow,
}

impl Place {
    /// The disk more often than the others.
    pub const ALL: [Self; 9] = [
        Self::Disk,
        Self::Disk,
        Self::Disk,
        Self::Disk,
        Self::Tmpfs,
        Self::ReadOnly,
        Self::ReadOnlyFileSystem,
        Self::NoExec,
        Self::NoSymlinkFollow,
    ];

    fn option(self) -> Option<MsFlags> {
        match self {
            Self::Disk => None,
            Self::Tmpfs => Some(MsFlags::empty()),
            // Without MS_BIND the flag is the file system's.
            Self::ReadOnlyFileSystem => Some(MsFlags::MS_RDONLY),
            Self::ReadOnly => Some(MsFlags::MS_BIND | MsFlags::MS_RDONLY),
            Self::NoExec => Some(MsFlags::MS_BIND | MsFlags::MS_NOEXEC),
            Self::NoSymlinkFollow => Some(MsFlags::MS_BIND | NO_SYMLINK_FOLLOW),
        }
    }
}

/// A tree and the paths that are asked for.
pub struct Tree {
    place: TempDir,
    mounted: bool,
    pub paths: Vec<PathBuf>,
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.mounted {
            let _ = nix::mount::umount2(self.place.path(), nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

/// A directory that everybody can enter.
fn place() -> TempDir {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn one<'a, T>(random: &mut impl Rng, of: &'a [T]) -> &'a T {
    &of[random.random_range(0..of.len())]
}

impl Tree {
    /// Three directories in each other, files and links in them.
    pub fn random(random: &mut impl Rng, place_of: Place) -> Self {
        let place = place();
        if place_of.option().is_some() {
            mount(Some("tmpfs"), place.path(), Some("tmpfs"), MsFlags::empty(), Some("size=1m,mode=755")).unwrap();
        }
        let mut paths = Vec::new();
        let mut directory = place.path().to_owned();
        for depth in 0..3 {
            directory.push(format!("d{depth}"));
            fs::create_dir(&directory).unwrap();
            paths.push(directory.clone());
            for name in ["a", "b"] {
                let file = directory.join(name);
                fs::write(&file, "#!/bin/true\n").unwrap();
                paths.push(file);
            }
        }
        for (name, target) in [("up", "../../d1/b"), ("chain", "up"), ("directory", "..")] {
            let link = place.path().join("d0/d1/d2").join(name);
            let target = if name == "up" { "../../../d0/d1/b" } else { target };
            symlink(target, &link).unwrap();
            paths.push(link);
        }
        // Owners before modes: chown takes set-id bits, and lists last because they are modes too.
        for path in paths.iter().filter(|path| !path.is_symlink()) {
            chown(path, Some(*one(random, &IDS)), Some(*one(random, &IDS))).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode(random, path.is_dir()))).unwrap();
            if random.random_range(0..2) == 0 {
                set(path, &acl(random));
            }
        }
        if let Some(option) = place_of.option() {
            remount(place.path(), option);
        }
        Self { place, mounted: place_of.option().is_some(), paths }
    }
}

/// Gives a file system an option. A child that another test has just forked holds the files that were being written here until it ends,
/// and no file system becomes read-only before.
fn remount(place: &Path, option: MsFlags) {
    let begin = Instant::now();
    loop {
        match mount(None::<&str>, place, None::<&str>, MsFlags::MS_REMOUNT | option, None::<&str>) {
            Err(Errno::EBUSY) if begin.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(1)),
            done => return done.unwrap(),
        }
    }
}

/// A mode: any, but directories can be searched more often, so that what lies below is asked for too.
fn mode(random: &mut impl Rng, is_directory: bool) -> u32 {
    let any = random.random_range(0..0o1000);
    if is_directory && random.random_range(0..4) > 0 { any | 0o111 } else { any }
}

fn acl(random: &mut impl Rng) -> Acl {
    let mut entries = vec![AclTag::Owner, AclTag::OwningGroup, AclTag::Mask, AclTag::Other];
    for id in IDS {
        if random.random_range(0..3) == 0 {
            entries.push(AclTag::User(id));
        }
        if random.random_range(0..3) == 0 {
            entries.push(AclTag::Group(id));
        }
    }
    entries.sort();
    let entry = |tag| AclEntry { tag, grants: random.random_range(0..8u8) | random.random_range(0..2u8) };
    Acl::of_entries(entries.into_iter().map(entry).collect()).unwrap()
}

fn set(path: &Path, acl: &Acl) {
    let attribute = acl.attribute();
    rustix::fs::setxattr(path, "system.posix_acl_access", &attribute, rustix::fs::XattrFlags::empty()).unwrap();
}

/// Makes a change as chmod(1) and setfacl(1) do.
pub fn make(change: &Change) {
    match change {
        Change::Mode { path, .. } => {
            // The command, as it is printed.
            let status = std::process::Command::new("sh").args(["-c", &change.command()]).status().unwrap();
            assert!(status.success(), "{path:?}");
        }
        Change::AclUser { path, uid, grants, mask } => {
            let mut value = [0; 1024];
            let before = match rustix::fs::getxattr(path, "system.posix_acl_access", &mut value[..]) {
                Ok(length) => Acl::of_attribute(&value[..length]).unwrap(),
                Err(_) => Acl::of_mode(fs::metadata(path).unwrap().permissions().mode()),
            };
            set(path, &before.granting_user(*uid, *grants, *mask));
        }
    }
}

/// An immutable file, and links in a sticky directory that everybody can write, of its owner and of a stranger.
pub fn special() -> Tree {
    let place = place();
    mount(Some("tmpfs"), place.path(), Some("tmpfs"), MsFlags::empty(), Some("size=1m,mode=755")).unwrap();
    let sticky = place.path().join("sticky");
    fs::create_dir(&sticky).unwrap();
    fs::set_permissions(&sticky, fs::Permissions::from_mode(0o1777)).unwrap();
    let file = place.path().join("file");
    fs::write(&file, "x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let mut paths = vec![file.clone()];
    for (name, uid) in [("owners", 0), ("strangers", 1000), ("own", 65534)] {
        let link = sticky.join(name);
        symlink("../file", &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(uid), Some(uid)).unwrap();
        paths.push(link);
    }
    let fixed = place.path().join("fixed");
    fs::write(&fixed, "x").unwrap();
    fs::set_permissions(&fixed, fs::Permissions::from_mode(0o666)).unwrap();
    let opened = fs::File::open(&fixed).unwrap();
    rustix::fs::ioctl_setflags(&opened, rustix::fs::IFlags::IMMUTABLE).unwrap();
    paths.push(fixed);
    Tree { place, mounted: true, paths }
}
