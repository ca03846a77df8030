//! Hierarchies of cgroups and the files of their groups: of those that this process sees mounted, or of a copy.
//!
//! A process that is looked at chooses its mounts and its root directory: in namespaces of its own, a hierarchy lies under any path it
//! likes, and under the same path this process finds what somebody else put there, a link to a file of root's or a pipe. So its
//! mounts are not asked. Hierarchies are looked for among the mounts of this process, known by the number of the mount and the kind of
//! the file system, and read beneath their root, where there are directories and the kernel's own files and nothing else.

use crate::kernel_files::{KernelFiles, MOST_BYTES};
use crate::task_files::TaskFiles;
use nix::sys::statfs::{CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, fstatfs};
use rustix::fs::{Dir, OFlags};
use slowpath_process::{MountPoint, MountTable, open_beneath, trusted_directory};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The kind of file system of version 2 (mountinfo); version 1 is `cgroup`.
const UNIFIED: &str = "cgroup2";

/// A mount that shows cgroups.
struct Mount {
    point: MountPoint,
    /// The group that is seen at the mount point: in containers often not the root.
    top: String,
}

impl Mount {
    /// From a line of proc_pid_mountinfo(5).
    fn of(line: &[u8]) -> Option<Self> {
        let point = MountPoint::parse(line).pop().filter(|point| [UNIFIED, "cgroup"].contains(&point.kind.as_str()))?;
        let top = line.split(|byte| *byte == b' ').nth(3)?;
        Some(Self { point, top: String::from_utf8_lossy(top).into_owned() })
    }

    fn all(text: &[u8]) -> Vec<Self> {
        text.split(|byte| *byte == b'\n').filter_map(Self::of).collect()
    }

    /// Whether it shows the hierarchy with these controllers, as `/proc/PID/cgroup` names them; version 2 without any.
    fn shows(&self, controllers: &str) -> bool {
        if self.point.kind == UNIFIED {
            return controllers.is_empty();
        }
        let has = |controller: &str| self.point.super_options.split(',').any(|option| option == controller);
        !controllers.is_empty() && controllers.split(',').all(has)
    }

    /// Its root directory, as a mere place.
    fn opened(&self, table: &mut Option<MountTable>) -> Option<OwnedFd> {
        let root = match table {
            Some(table) => {
                let root = table.open(&self.point.at, OFlags::PATH | OFlags::DIRECTORY).ok()?;
                // Another mount can lie on top of it.
                table.mount_of(&root).filter(|seen| seen.id == self.point.id)?;
                root
            }
            None => trusted_directory(&self.point.at).ok()?,
        };
        let kind = if self.point.kind == UNIFIED { CGROUP2_SUPER_MAGIC } else { CGROUP_SUPER_MAGIC };
        (fstatfs(&root).ok()?.filesystem_type() == kind).then_some(root)
    }
}

/// The mounts among which the hierarchies of a process are looked for.
pub(super) struct Mounts<'a> {
    all: Vec<Mount>,
    kernel_files: &'a KernelFiles,
    /// Those of this process. None before Linux 5.8, and where the root directory is no mount (chroot(2)).
    table: Option<MountTable>,
}

impl<'a> Mounts<'a> {
    /// This process's own, where the task runs here; those of the task in a copy.
    pub(super) fn of(task: &TaskFiles<'a>) -> Self {
        let kernel_files = task.kernel_files();
        if kernel_files.is_here() {
            let text = fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
            return Self { all: Mount::all(&text), kernel_files, table: MountTable::read().ok() };
        }
        let text = task.file("mountinfo");
        Self { all: text.map(|text| Mount::all(text.as_bytes())).unwrap_or_default(), kernel_files, table: None }
    }

    /// The hierarchy with these controllers, and the group that is at its top there.
    pub(super) fn find(&mut self, controllers: &str) -> Option<(Rc<Hierarchy<'a>>, String)> {
        let Self { all, kernel_files, table } = self;
        all.iter().filter(|mount| mount.shows(controllers)).find_map(|mount| {
            let files = match kernel_files.is_here() {
                true => Files::Here(mount.opened(table)?),
                false => Files::Copy(kernel_files),
            };
            Some((Rc::new(Hierarchy { at: mount.point.at.clone(), files }), mount.top.clone()))
        })
    }
}

/// A hierarchy, or as much of it as is mounted in one place.
pub(super) struct Hierarchy<'a> {
    at: PathBuf,
    files: Files<'a>,
}

enum Files<'a> {
    /// Beneath this root directory.
    Here(OwnedFd),
    /// In a copy, under the path of the mount point.
    Copy(&'a KernelFiles),
}

/// A group of a hierarchy.
#[derive(Clone)]
pub(super) struct Group<'a> {
    hierarchy: Rc<Hierarchy<'a>>,
    /// Its path below the mount point.
    below: String,
}

impl<'a> Group<'a> {
    pub(super) fn new(hierarchy: &Rc<Hierarchy<'a>>, below: String) -> Self {
        Self { hierarchy: Rc::clone(hierarchy), below }
    }

    /// The text of one of its files.
    pub(super) fn read(&self, file: &str) -> Option<String> {
        match &self.hierarchy.files {
            Files::Here(root) => text(root, &Path::new(&self.below).join(file)),
            Files::Copy(kernel_files) => kernel_files.read(&self.in_copy(file)).ok(),
        }
    }

    /// Names of its files and of the groups below it.
    pub(super) fn names(&self) -> Vec<String> {
        match &self.hierarchy.files {
            Files::Here(root) => names(root, &self.below).unwrap_or_default(),
            Files::Copy(kernel_files) => kernel_files.list(&self.in_copy("")).unwrap_or_default(),
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.hierarchy.at.join(&self.below).components().collect()
    }

    /// The copy's own mountinfo says where: never outside of the copy.
    fn in_copy(&self, file: &str) -> String {
        let path = self.path().join(file);
        let inside = path.components().filter(|part| matches!(part, Component::Normal(_)));
        inside.collect::<PathBuf>().to_string_lossy().into_owned()
    }
}

fn text(root: &OwnedFd, path: &Path) -> Option<String> {
    let file = File::from(open_beneath(root, path, OFlags::RDONLY | OFlags::NONBLOCK).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn names(root: &OwnedFd, group: &str) -> Option<Vec<String>> {
    let group = if group.is_empty() { "." } else { group };
    let directory = open_beneath(root, group, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
    let names = Dir::read_from(&directory).ok()?.filter_map(Result::ok);
    Some(names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(line: &str) -> Mount {
        Mount::of(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_hierarchy_is_known_by_all_of_its_controllers() {
        let both = mount("30 1 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct");
        assert!(both.shows("cpu,cpuacct") && both.shows("cpu"));
        assert!(!both.shows("cpu,cpuset") && !both.shows(""));
        let unified = mount("30 1 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate");
        assert!(unified.shows("") && !unified.shows("cpu"));
        assert_eq!(unified.top, "/docker/1");
        assert!(Mount::of(b"27 1 254:0 / / rw - ext4 /dev/vda rw").is_none() && Mount::of(b"").is_none());
    }

    #[test]
    fn what_lies_where_no_hierarchy_is_mounted_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("cpu.max"), "max 100000\n").unwrap();
        let kernel_files = KernelFiles::here();
        for table in [MountTable::read().ok(), None] {
            let line = format!("1 1 0:26 / {} rw - cgroup2 cgroup2 rw", directory.path().display());
            let mut mounts = Mounts { all: vec![mount(&line)], kernel_files: &kernel_files, table };
            assert!(mounts.find("").is_none());
        }
    }

    #[test]
    fn a_mount_point_of_a_copy_does_not_lead_out_of_it() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("copy/etc")).unwrap();
        fs::write(directory.path().join("outside"), "x").unwrap();
        fs::write(directory.path().join("copy/etc/cpu.max"), "max 100000\n").unwrap();
        let kernel_files = KernelFiles::Saved(directory.path().join("copy"));
        let group = |at: &str, below: &str| {
            let hierarchy = Rc::new(Hierarchy { at: at.into(), files: Files::Copy(&kernel_files) });
            Group::new(&hierarchy, below.to_owned())
        };
        assert_eq!(group("/..", "").read("outside"), None);
        assert_eq!(group("/", "etc").read("cpu.max").as_deref(), Some("max 100000\n"));
        assert_eq!(group("/etc", "").names(), ["cpu.max"]);
    }
}
