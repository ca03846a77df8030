//! Cgroups that are made for launches: below the caller's own, one for each choice of limits, removed at the end.

use super::error::ToggleError;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use slowpath_lab::{EnabledController, LaunchGroup, leftovers};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// One file of the group that a launch gets below `parent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupFile {
    /// The caller's own group in the controller's hierarchy.
    pub(crate) parent: PathBuf,
    /// The controller, where it must be switched on for groups below (version 2).
    pub(crate) enable: Option<String>,
    /// Name and text; none: the launch gets the group, and nothing is written.
    pub(crate) write: Option<(String, String)>,
    /// Written only where nobody else says what is to stand there.
    pub(crate) weak: bool,
}

/// The directory under which a group is, and everything that is written to it.
type Key = (PathBuf, Vec<(String, String)>);

/// Groups that were made.
#[derive(Debug, Default)]
pub(super) struct MadeGroups {
    /// What all launches get.
    pub(super) common: Vec<GroupFile>,
    made: RefCell<BTreeMap<Key, LaunchGroup>>,
    /// Switched off again after the groups are gone, where nobody else of us needs them.
    enabled: RefCell<Vec<EnabledController>>,
}

impl MadeGroups {
    /// The `cgroup.procs` files of groups that hold these files; made where there are none yet.
    pub(super) fn joined(&self, files: Vec<GroupFile>) -> Result<Vec<PathBuf>, ToggleError> {
        let mut parents: BTreeMap<PathBuf, Vec<GroupFile>> = BTreeMap::new();
        for file in files {
            parents.entry(file.parent.clone()).or_default().push(file);
        }
        let mut joined = Vec::new();
        for (parent, files) in parents {
            let controllers: Vec<&String> = files.iter().filter_map(|file| file.enable.as_ref()).collect();
            let key = (parent, writes(&files));
            let known = self.made.borrow().get(&key).map(LaunchGroup::procs);
            joined.push(match known {
                Some(procs) => procs,
                None => self.make(key, &controllers)?,
            });
        }
        Ok(joined)
    }

    fn make(&self, key: Key, controllers: &[&String]) -> Result<PathBuf, ToggleError> {
        let failed = |what: &'static str, path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| ToggleError::Group { path, what, source }
        };
        let (parent, writes) = &key;
        if self.made.borrow().is_empty() {
            leftovers::clean_groups();
        }
        for controller in controllers {
            self.enable(parent, controller).map_err(failed("given its controller", parent))?;
        }
        let group = LaunchGroup::create(parent).map_err(|error| failed("made", parent)(io::Error::other(error)))?;
        let directory = opened(group.path()).map_err(failed("opened", group.path()))?;
        for (file, text) in writes {
            set(&directory, file, text).map_err(failed("set", &group.path().join(file)))?;
        }
        let procs = group.procs();
        // Removed with the others.
        self.made.borrow_mut().insert(key, group);
        Ok(procs)
    }

    fn enable(&self, parent: &Path, controller: &str) -> io::Result<()> {
        let enabled = EnabledController::new(parent, controller).map_err(io::Error::other)?;
        self.enabled.borrow_mut().extend(enabled);
        Ok(())
    }
}

/// A directory that this process made in a hierarchy of cgroups, open: where others may write beside it, its name can be another's
/// by now.
fn opened(group: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = nix::fcntl::open(group, flags, Mode::empty())?;
    let kind = nix::sys::statfs::fstatfs(&directory)?.filesystem_type();
    let is_own = nix::sys::stat::fstat(&directory)?.st_uid == nix::unistd::geteuid().as_raw();
    let is_group = kind == nix::sys::statfs::CGROUP_SUPER_MAGIC || kind == nix::sys::statfs::CGROUP2_SUPER_MAGIC;
    if is_own && is_group { Ok(directory) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

/// Writes a file of a group. Its name may have come from a context.
fn set(group: &OwnedFd, file: &str, text: &str) -> io::Result<()> {
    if file.contains('/') {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = nix::fcntl::openat(group, file, flags, Mode::empty())?;
    fs::File::from(file).write_all(text.as_bytes())
}

/// What is written, in order: what is weak only where nothing else is said.
fn writes(files: &[GroupFile]) -> Vec<(String, String)> {
    let is_said = |name: &str| {
        files.iter().any(|file| !file.weak && file.write.as_ref().is_some_and(|(written, _)| written == name))
    };
    let mut writes: Vec<(String, String)> = Vec::new();
    for file in files {
        if let Some(write) = &file.write
            && !(file.weak && is_said(&write.0))
            && !writes.contains(write)
        {
            writes.push(write.clone());
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_weak_gives_way_and_the_order_stays() {
        let file = |name: &str, text: &str, weak| GroupFile {
            parent: "/g".into(),
            enable: None,
            write: Some((name.to_owned(), text.to_owned())),
            weak,
        };
        let files =
            [file("cpus", "0", false), file("mems", "0-1", true), file("mems", "1", false), file("cpus", "0-3", true)];
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(writes(&files), [pair("cpus", "0"), pair("mems", "1")]);
        assert_eq!(writes(&files[1..2]), [pair("mems", "0-1")]);
    }
}
