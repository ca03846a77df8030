//! Looking up a path of this machine as the kernel does (path_resolution(7)), and noting what it looks at.
//!
//! Each component is opened with `O_PATH | O_NOFOLLOW`, which opens no device, waits for no FIFO and needs no permission on the file
//! itself. Symbolic links are read and followed by hand.

use super::facts;
use crate::access::{Component, FileKind, Lookup, LookupEnd, Step};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, Statx, openat, readlinkat};
use rustix::io::Errno;
use slowpath_process::MountPoint;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component as Part, Path, PathBuf};

/// Links that one lookup follows (`MAXSYMLINKS`, include/linux/namei.h).
const MOST_LINKS: usize = 40;

/// Opening without opening.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Why there is nothing at a path.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The path is relative.
    #[error("{0:?} is no absolute path")]
    Relative(PathBuf),
    /// A name is not there, or stands below what is no directory.
    #[error("{path:?} does not exist")]
    Missing {
        /// The first path that is not there.
        path: PathBuf,
    },
    /// More than 40 symbolic links.
    #[error("{0:?} leads through more than {MOST_LINKS} symbolic links")]
    TooManyLinks(PathBuf),
    /// It lies on a file system whose answers come from a server, which may never come.
    #[error("{0:?} is on a file system that asks a server")]
    NotEntered(PathBuf),
    /// What the kernel says.
    #[error("{path:?} cannot be looked up")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What a path led to.
#[derive(Debug)]
pub struct ResolvedPath {
    /// The lookup, for the evaluator.
    pub lookup: Lookup,
    /// The file without symbolic links in its path, where it was reached.
    pub file: Option<(PathBuf, OwnedFd)>,
}

/// What is the same for all paths of this machine: mounts, settings, and whether ids can be compared.
#[derive(Debug)]
pub struct Machine {
    mounts: HashMap<u64, MountPoint>,
    protected_symlinks: Option<bool>,
    sees_all_ids: bool,
    confinement: Option<String>,
}

impl Machine {
    /// Reads them.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn read() -> io::Result<Self> {
        let mounts = MountPoint::all()?.into_iter().map(|mount| (mount.id, mount)).collect();
        let setting = fs::read_to_string("/proc/sys/fs/protected_symlinks").ok();
        let enforcing = fs::read_to_string("/sys/fs/selinux/enforce").is_ok_and(|text| text.trim() == "1");
        Ok(Self {
            mounts,
            protected_symlinks: setting.map(|text| text.trim() != "0"),
            sees_all_ids: fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| maps_all(&map)),
            confinement: enforcing
                .then(|| "permissions allow it, but SELinux is enforcing and its policy is not read".to_owned()),
        })
    }

    /// What a security module that confines every process leaves open ([`crate::access::Identity::confinement`]).
    pub fn confinement(&self) -> Option<String> {
        self.confinement.clone()
    }

    /// Looks up an absolute path; a symbolic link at its end is followed.
    ///
    /// # Errors
    /// There is nothing there. What the calling process may not look at is no error but a blocked lookup.
    pub fn look_up(&self, path: &Path) -> Result<ResolvedPath, LookupError> {
        if !path.is_absolute() {
            return Err(LookupError::Relative(path.to_owned()));
        }
        let root = openat(CWD, "/", LOOK, Mode::empty()).map_err(|errno| failed(Path::new("/"), errno))?;
        let (_, root_facts) = self.facts(Path::new("/"), &root)?;
        let mut walk = Walk { stack: vec![(root, root_facts)], steps: Vec::new(), links: 0 };
        let mut names: Vec<OsString> = names(path);
        while let Some(name) = names.pop() {
            match self.step(&mut walk, &name, &mut names) {
                Ok(()) => {}
                // Searching a directory needs a permission that the reader may lack; who is asked about may have it.
                Err(LookupError::Io { path, source }) if source.kind() == io::ErrorKind::PermissionDenied => {
                    let why = format!("{} cannot be looked up by the user of slowpath", path.display());
                    return Ok(ResolvedPath { lookup: self.lookup(walk.steps, LookupEnd::Blocked(why)), file: None });
                }
                Err(error @ LookupError::NotEntered(_)) => {
                    return Ok(ResolvedPath {
                        lookup: self.lookup(walk.steps, LookupEnd::Blocked(error.to_string())),
                        file: None,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        let Some((file, facts)) = walk.stack.pop() else { return Err(LookupError::Missing { path: path.to_owned() }) };
        let at = facts.path.clone();
        Ok(ResolvedPath { lookup: self.lookup(walk.steps, LookupEnd::File(facts)), file: Some((at, file)) })
    }

    fn lookup(&self, steps: Vec<Step>, end: LookupEnd) -> Lookup {
        Lookup { steps, end, protected_symlinks: self.protected_symlinks }
    }

    /// The facts of an open file at this path.
    ///
    /// # Errors
    /// The kernel refuses to show them.
    pub(crate) fn facts(&self, path: &Path, file: &OwnedFd) -> Result<(Statx, Component), LookupError> {
        let status = facts::status(file).map_err(|source| LookupError::Io { path: path.to_owned(), source })?;
        let mount = self.mounts.get(&status.stx_mnt_id);
        let component = facts::component(path, file, &status, mount, self.sees_all_ids);
        Ok((status, component))
    }

    /// Opens a name in a directory without opening the file.
    ///
    /// # Errors
    /// It is not there, or the directory cannot be searched.
    pub(crate) fn open(directory: &OwnedFd, path: &Path, name: &OsStr) -> Result<OwnedFd, LookupError> {
        openat(directory, name, LOOK, Mode::empty()).map_err(|errno| failed(path, errno))
    }

    fn step(&self, walk: &mut Walk, name: &OsStr, names: &mut Vec<OsString>) -> Result<(), LookupError> {
        let Some((directory, holder)) = walk.stack.last() else {
            return Err(LookupError::Missing { path: PathBuf::from(name) });
        };
        let (holder, path) = (holder.clone(), holder.path.join(name));
        if holder.mount.asks_server && name != ".." {
            return Err(LookupError::NotEntered(holder.path));
        }
        if holder.kind != FileKind::Directory {
            return Err(LookupError::Missing { path });
        }
        // The same directory twice in a row decides nothing new.
        if walk.steps.last() != Some(&Step::Search(holder.clone())) {
            walk.steps.push(Step::Search(holder.clone()));
        }
        if name == ".." {
            if walk.stack.len() > 1 {
                walk.stack.pop();
            }
            return Ok(());
        }
        let file = Self::open(directory, &path, name)?;
        let (_, facts) = self.facts(&path, &file)?;
        if facts.kind != FileKind::Link {
            walk.stack.push((file, facts));
            return Ok(());
        }
        walk.links += 1;
        if walk.links > MOST_LINKS {
            return Err(LookupError::TooManyLinks(path));
        }
        let target = readlinkat(&file, "", Vec::new()).map_err(|errno| failed(&path, errno))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        walk.steps.push(Step::Follow { link: facts, directory: holder, is_last: names.is_empty() });
        if target.is_absolute() {
            walk.stack.truncate(1);
        }
        names.extend(self::names(&target));
        Ok(())
    }
}

/// A lookup under way.
struct Walk {
    /// From the root to where it is.
    stack: Vec<(OwnedFd, Component)>,
    steps: Vec<Step>,
    links: usize,
}

fn failed(path: &Path, errno: Errno) -> LookupError {
    match errno {
        Errno::NOENT | Errno::NOTDIR => LookupError::Missing { path: path.to_owned() },
        errno => LookupError::Io { path: path.to_owned(), source: errno.into() },
    }
}

/// The names of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Part<'_>| match part {
        Part::Normal(name) => Some(name.to_owned()),
        Part::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// Whether `/proc/self/uid_map` maps every id to itself (user_namespaces(7)).
fn maps_all(map: &str) -> bool {
    let mut lines = map.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    matches!(lines.next().as_deref(), Some(["0", "0", "4294967295"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Access, Decision, Identity, Rule, decide};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn decided(path: &Path, access: Access) -> Decision {
        let found = Machine::read().unwrap().look_up(path).unwrap();
        decide(&Identity::new(65534, 65534, vec![]), &found.lookup, access)
    }

    /// A directory that everybody can enter, so that what a test closes is what denies.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    #[test]
    fn links_are_followed_out_of_a_directory_and_each_directory_on_the_way_counts() {
        let place = place();
        let (closed, open) = (place.path().join("closed"), place.path().join("open"));
        fs::create_dir(&closed).unwrap();
        fs::create_dir(&open).unwrap();
        fs::write(closed.join("file"), "x").unwrap();
        symlink("../closed/file", open.join("link")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        let Decision::Denied(denial) = decided(&open.join("link"), Access::Read) else { panic!("it is not denied") };
        assert_eq!((denial.path, denial.access, denial.rule), (closed.clone(), Access::Search, Rule::OtherBits));
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(decided(&open.join("link"), Access::Read), Decision::Allowed);
    }

    #[test]
    fn what_is_not_there_and_circles_of_links_are_errors_with_the_path() {
        let place = place();
        let machine = Machine::read().unwrap();
        let missing = place.path().join("none/of/it");
        let Err(LookupError::Missing { path }) = machine.look_up(&missing) else { panic!("it is there") };
        assert_eq!(path, place.path().join("none"));
        symlink("circle", place.path().join("circle")).unwrap();
        assert!(matches!(machine.look_up(&place.path().join("circle")), Err(LookupError::TooManyLinks(_))));
        assert!(matches!(machine.look_up(Path::new("etc")), Err(LookupError::Relative(_))));
    }

    #[test]
    fn names_that_are_no_text_and_a_way_back_are_looked_up() {
        let place = place();
        let odd = place.path().join(OsStr::from_bytes(b"\xff\n"));
        fs::create_dir(&odd).unwrap();
        fs::write(place.path().join("file"), "x").unwrap();
        let found = Machine::read().unwrap().look_up(&odd.join("../file")).unwrap();
        assert_eq!(found.file.unwrap().0, place.path().join("file"));
    }

    #[test]
    fn a_file_of_proc_is_unknown_because_proc_has_rules_of_its_own() {
        let Decision::Unknown { why } = decided(Path::new("/proc/self/status"), Access::Read) else {
            panic!("decided")
        };
        assert!(why.contains("proc has rules of its own"), "{why}");
    }

    #[test]
    fn a_namespace_that_maps_few_ids_is_known() {
        assert!(maps_all("         0          0 4294967295\n"));
        assert!(!maps_all("         0       1000          1\n"));
    }
}
