//! In what a launch in the lab differs from one on the host, in words, for the report.

use crate::lab::Lab;
use slowpath_process::MountTable;
use std::path::Path;

/// Mount options that take something from programs: what the lab mounts has those of the host's mount that it covers.
const RESTRICTING: &[&str] = &["nosuid", "nodev", "noexec"];

impl Lab {
    /// Mount options and conditions that differ from the host's, one sentence each.
    pub fn options_in_force(&self) -> Vec<String> {
        let (plan, settings, mut said) = (self.plan(), self.settings(), Vec::new());
        let name = self.device().name();
        said.push(format!(
            "device: {} files come from {name}, a loop device with a freshly written, read-only ext4 image; their device and inode numbers and their place on disk differ from the host's",
            self.image().files().len()
        ));
        said.push(match self.device().direct_io() {
            _ if settings.from_memory => "from memory: the loop device reads through the host's page cache".to_owned(),
            true => "direct I/O: the loop device reads past the host's page cache".to_owned(),
            false => "no direct I/O: the file system of the image refuses it, so the image's own cached pages are dropped before each launch".to_owned(),
        });
        let mut mounts = MountTable::read().ok();
        for tree in &plan.overlaid {
            said.push(format!("overlay: {} is read-only (EROFS) and of type overlay", tree.display()));
            said.extend(mounts.as_mut().and_then(|mounts| kept_options(tree, mounts)));
        }
        if plan.bound > 0 {
            said.push(format!(
                "ro: {} files outside of these trees are mounted one by one: they can be neither written nor replaced (EROFS, EBUSY), and their inodes are in memory before the launch",
                plan.bound
            ));
            said.push("nosuid, nodev: those of them that are not root's".to_owned());
        }
        for at in &plan.rebound {
            said.push(format!("bind: {} is the host's, mounted over the overlay again", at.display()));
        }
        if let Some(why) = self.overlay_refused() {
            said.push(format!("no overlay: {why}; directories are the host's and warm"));
        }
        said.push(format!("readahead: {} KiB on {name}", settings.read_ahead_kb));
        if let Some(throttle) = settings.throttle {
            let limit = |limit: u64, unit: &str| match limit {
                0 => format!("unlimited {unit}"),
                limit => format!("{limit} {unit}"),
            };
            let (iops, bytes) = (limit(throttle.iops, "reads/s"), limit(throttle.bytes_per_second, "bytes/s"));
            said.push(format!("throttle: {iops} and {bytes} on {name} by cgroup (a rate, not a seek time)"));
        }
        said.push("namespaces: mounts of its own, and processes of its own where the launch asks for it".to_owned());
        said
    }
}

fn kept_options(tree: &Path, mounts: &mut MountTable) -> Option<String> {
    let place = mounts.open(tree, rustix::fs::OFlags::PATH).ok()?;
    let host = mounts.mount_of(&place)?;
    let kept: Vec<&str> = RESTRICTING.iter().copied().filter(|option| host.has_option(option)).collect();
    (!kept.is_empty()).then(|| format!("options: {} is {}, as on the host", tree.display(), kept.join(", ")))
}
