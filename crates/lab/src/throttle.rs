//! A cgroup that limits how fast its processes read from the lab's device. Limits a rate, not a latency: no model of a
//! hard disk's seeks.

use crate::controller::EnabledController;
use crate::error::{LabError, failed};
use crate::launch_group::LaunchGroup;
use serde::{Deserialize, Serialize};
use slowpath_process::{MountPoint, trusted_directory};
use std::fs;
use std::path::{Path, PathBuf};

/// Limits of reading from the lab's device; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Read requests a second.
    pub iops: u64,
    /// Bytes a second.
    pub bytes_per_second: u64,
}

/// The block controller as this machine has it mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// cgroup v1 `blkio`.
    V1(PathBuf),
    /// cgroup v2 `io`.
    V2(PathBuf),
}

impl Hierarchy {
    /// Where the controller is, or `None` when it is nowhere.
    pub(crate) fn find() -> Option<Self> {
        let mut mounts = MountPoint::all().ok()?;
        // A hierarchy that lies where others could put something else in its place is none for root.
        mounts.retain(|mount| mount.kind.starts_with("cgroup") && trusted_directory(&mount.at).is_ok());
        Self::among(&mounts, |root| fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default())
    }

    fn among(mounts: &[MountPoint], controllers: impl Fn(&Path) -> String) -> Option<Self> {
        // A controller is in one hierarchy only; v1 claims it where both are mounted.
        let v1 = mounts
            .iter()
            .find(|mount| mount.kind == "cgroup" && mount.super_options.split(',').any(|option| option == "blkio"));
        if let Some(mount) = v1 {
            return Some(Self::V1(mount.at.clone()));
        }
        let v2 = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
        controllers(&v2.at).split_ascii_whitespace().any(|name| name == "io").then(|| Self::V2(v2.at.clone()))
    }

    pub(crate) fn root(&self) -> &Path {
        match self {
            Self::V1(root) | Self::V2(root) => root,
        }
    }

    /// Files below a cgroup, each with the line to write into it. In both versions a limit of 0 in `throttle` takes away one that is
    /// there (Documentation/admin-guide/cgroup-v1/blkio-controller.rst, cgroup-v2.rst).
    fn rules(&self, (major, minor): (u64, u64), throttle: Throttle) -> Vec<(&'static str, String)> {
        let (iops, bytes) = (throttle.iops, throttle.bytes_per_second);
        match self {
            Self::V1(_) => [("blkio.throttle.read_iops_device", iops), ("blkio.throttle.read_bps_device", bytes)]
                .into_iter()
                .map(|(file, limit)| (file, format!("{major}:{minor} {limit}")))
                .collect(),
            Self::V2(_) => {
                let limit = |limit: u64| if limit == 0 { "max".to_owned() } else { limit.to_string() };
                vec![("io.max", format!("{major}:{minor} riops={} rbps={}", limit(iops), limit(bytes)))]
            }
        }
    }
}

/// A cgroup of the lab; removed on drop.
#[derive(Debug)]
pub(crate) struct ThrottleGroup {
    group: LaunchGroup,
    hierarchy: Hierarchy,
    device: (u64, u64),
    limits: Throttle,
    /// Switched off after the group is gone.
    _controller: Option<EnabledController>,
}

impl ThrottleGroup {
    pub(crate) fn create(device: (u64, u64), throttle: Throttle) -> Result<Self, LabError> {
        let hierarchy = Hierarchy::find().ok_or(LabError::Unavailable {
            what: "a throttle",
            reason: "neither cgroup v1 blkio nor cgroup v2 io is mounted".into(),
            remedy: "mount the controller, or measure without a throttle",
        })?;
        crate::leftovers::clean_groups();
        let controller = match &hierarchy {
            Hierarchy::V2(root) => EnabledController::new(root, "io")?,
            Hierarchy::V1(_) => None,
        };
        let group = LaunchGroup::create(hierarchy.root())?;
        let group = Self { group, hierarchy, device, limits: throttle, _controller: controller };
        group.impose()?;
        Ok(group)
    }

    /// Puts the limits in force, also after [`Self::lift`].
    pub(crate) fn impose(&self) -> Result<(), LabError> {
        self.write(self.limits)
    }

    /// Takes the limits away, and lets go at once what waits because of them: a process that waits for metadata of a file system
    /// cannot be killed before it has them.
    pub(crate) fn lift(&self) -> Result<(), LabError> {
        self.write(Throttle { iops: 0, bytes_per_second: 0 })
    }

    fn write(&self, limits: Throttle) -> Result<(), LabError> {
        for (file, rule) in self.hierarchy.rules(self.device, limits) {
            let path = self.group.path().join(file);
            fs::write(&path, rule).map_err(failed("write the limit", &path))?;
        }
        Ok(())
    }

    /// The file by which a process joins.
    pub(crate) fn procs(&self) -> PathBuf {
        self.group.procs()
    }
}

impl Drop for ThrottleGroup {
    fn drop(&mut self) {
        // What still waits for the device would wait on in a group that nobody finds.
        let _ = self.lift();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Throttle = Throttle { iops: 400, bytes_per_second: 8_000_000 };

    fn mount(at: &str, kind: &str, super_options: &str) -> MountPoint {
        MountPoint {
            id: 1,
            parent: 0,
            at: at.into(),
            options: "rw".into(),
            kind: kind.into(),
            super_options: super_options.into(),
        }
    }

    #[test]
    fn blkio_of_version_1_wins_where_both_versions_are_mounted() {
        let mounts = [mount("/cg/unified", "cgroup2", "rw"), mount("/cg/blkio", "cgroup", "rw,blkio")];
        assert_eq!(Hierarchy::among(&mounts, |_| String::new()), Some(Hierarchy::V1("/cg/blkio".into())));
    }

    #[test]
    fn version_2_counts_only_with_its_io_controller() {
        let mounts = [mount("/cg", "cgroup2", "rw")];
        assert_eq!(Hierarchy::among(&mounts, |_| "cpu io memory\n".into()), Some(Hierarchy::V2("/cg".into())));
        assert_eq!(Hierarchy::among(&mounts, |_| "cpu memory\n".into()), None);
    }

    #[test]
    fn limits_are_written_as_each_version_reads_them() {
        let v1 = Hierarchy::V1("/cg".into()).rules((7, 3), LIMITS);
        let (iops, bytes) = ("blkio.throttle.read_iops_device", "blkio.throttle.read_bps_device");
        assert_eq!(v1, [(iops, "7:3 400".to_owned()), (bytes, "7:3 8000000".to_owned())]);
        let v2 = Hierarchy::V2("/cg".into()).rules((7, 3), LIMITS);
        assert_eq!(v2, [("io.max", "7:3 riops=400 rbps=8000000".to_owned())]);
    }

    #[test]
    fn a_limit_of_zero_is_no_limit() {
        let throttle = Throttle { iops: 0, ..LIMITS };
        let v1: Vec<String> =
            Hierarchy::V1("/cg".into()).rules((7, 3), throttle).into_iter().map(|(_, line)| line).collect();
        assert_eq!(v1, ["7:3 0", "7:3 8000000"]);
        assert_eq!(Hierarchy::V2("/cg".into()).rules((7, 3), throttle)[0].1, "7:3 riops=max rbps=8000000");
    }
}
