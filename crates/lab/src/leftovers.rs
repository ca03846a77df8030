//! What labs of killed processes left behind, found by name and removed. Kernel objects (mounts, loop devices, the
//! image's space) are never left: they hang on descriptors. A directory of empty mount points and a cgroup can be.

use crate::directory::{self, DEFAULT_BASE};
use crate::filesystem::mount_points;
use crate::owner::Owner;
use crate::throttle;
use serde::Serialize;
use slowpath_tables::Bytes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Levels of control groups that are looked through below a root: those of a user's service in a container have some eight.
const DEEPEST: usize = 16;

/// What kind of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A lab's directory.
    Directory,
    /// A cgroup with a throttle, or with the limits of a launch.
    Cgroup,
}

/// A lab's trace on this machine, of a living or a dead owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Directory or cgroup.
    pub kind: Kind,
    /// Where.
    pub path: PathBuf,
    /// Pid of the owner.
    pub pid: u32,
    /// Whether the owner lives (in any pid namespace, for directories).
    pub owner_alive: bool,
    /// Bytes that the image takes on disk while its owner lives; `None` for cgroups and unfinished images.
    pub size: Option<Bytes>,
}

/// All labs on this machine, those of living owners included (`lab list`). `bases` are directories given for images
/// besides the default one.
pub fn list(bases: &[&Path]) -> Vec<Trace> {
    let mut traces = Vec::new();
    let mut places: Vec<PathBuf> = bases.iter().copied().chain([Path::new(DEFAULT_BASE)]).map(PathBuf::from).collect();
    places.sort();
    places.dedup();
    for base in &places {
        for (path, owner) in owned_entries(base, directory::PREFIX) {
            let owner_alive = owner.is_alive() || directory::is_locked(&path);
            let size = owner_alive.then(|| directory::size_of(&path)).flatten();
            traces.push(Trace { kind: Kind::Directory, path, pid: owner.pid, owner_alive, size });
        }
    }
    traces.extend(groups());
    traces
}

/// Control groups of all hierarchies: of throttles, and those that were made for launches below the caller's own group.
fn groups() -> Vec<Trace> {
    let roots = mount_points().unwrap_or_default().into_iter().filter(|mount| mount.kind.starts_with("cgroup"));
    let mut traces = Vec::new();
    for root in roots {
        let mut open = vec![(root.at, 0)];
        while let Some((place, depth)) = open.pop() {
            for (path, owner) in owned_entries(&place, throttle::PREFIX) {
                let owner_alive = owner.is_alive();
                traces.push(Trace { kind: Kind::Cgroup, path, pid: owner.pid, owner_alive, size: None });
            }
            if depth < DEEPEST {
                open.extend(directories(&place).map(|path| (path, depth + 1)));
            }
        }
    }
    // Several mounts can show one hierarchy.
    traces.sort_by(|one, other| one.path.cmp(&other.path));
    traces.dedup();
    traces
}

/// Removes control groups of dead owners, as far as it may. Every command that makes some begins with that.
pub fn clean_groups() {
    for trace in groups().iter().filter(|trace| !trace.owner_alive) {
        let _ = fs::remove_dir(&trace.path);
    }
}

/// Removes what dead owners left. Each trace comes with the result of its removal; a cgroup in which processes still
/// live is not removed.
pub fn clean(bases: &[&Path]) -> Vec<(Trace, io::Result<()>)> {
    let dead = list(bases).into_iter().filter(|trace| !trace.owner_alive);
    dead.map(|trace| {
        let result = match trace.kind {
            Kind::Directory => directory::remove(&trace.path),
            Kind::Cgroup => fs::remove_dir(&trace.path),
        };
        (trace, result)
    })
    .collect()
}

fn directories(place: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn owned_entries(place: &Path, prefix: &str) -> Vec<(PathBuf, Owner)> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        // A planted symbolic link is not followed, a file of that name is not ours.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| Some((entry.path(), Owner::parse(entry.file_name().to_str()?, prefix)?)))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_dead_owners_are_removed_and_others_stay() {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        let me = Owner::this_process().unwrap();
        let alive = base.path().join(me.fresh_name(directory::PREFIX));
        let dead = base.path().join(Owner { start: me.start + 1, ..me }.fresh_name(directory::PREFIX));
        let foreign = base.path().join("slowpath-lab-notes");
        for path in [&alive, &dead, &foreign] {
            fs::create_dir(path).unwrap();
        }
        fs::create_dir(dead.join("mount")).unwrap();
        let removed: Vec<_> =
            clean(&[base.path()]).into_iter().filter(|(trace, _)| trace.path.starts_with(base.path())).collect();
        assert_eq!(removed.len(), 1);
        assert!(removed[0].1.is_ok());
        assert_eq!((alive.exists(), dead.exists(), foreign.exists()), (true, false, true));
    }

    #[test]
    fn a_directory_locked_by_a_living_process_stays_though_its_owner_looks_dead() {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        let me = Owner::this_process().unwrap();
        let path = base.path().join(Owner { start: me.start + 1, ..me }.fresh_name(directory::PREFIX));
        fs::create_dir(&path).unwrap();
        let lock =
            nix::fcntl::Flock::lock(fs::File::open(&path).unwrap(), nix::fcntl::FlockArg::LockExclusive).unwrap();
        assert!(clean(&[base.path()]).iter().all(|(trace, _)| trace.path != path));
        drop(lock);
        assert!(clean(&[base.path()]).iter().any(|(trace, _)| trace.path == path));
    }
}
