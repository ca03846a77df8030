//! In what a launch in the lab differs from one on the host, in words, for the report.

use crate::filesystem::mount_points;
use crate::lab::Lab;
use std::path::Path;

/// Mount options that change what programs may do; a lab's overlay never has them.
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
            true => "direct I/O: the loop device reads past the host's page cache".to_owned(),
            false => "no direct I/O: the file system of the image refuses it, so the image's own cached pages are dropped before each launch".to_owned(),
        });
        let mounts = mount_points().unwrap_or_default();
        for tree in &plan.overlaid {
            said.push(format!("overlay: {} is read-only (EROFS) and of type overlay", tree.display()));
            let host = mounts
                .iter()
                .filter(|mount| tree.starts_with(&mount.at))
                .max_by_key(|mount| mount.at.as_os_str().len());
            let options = host.map(|mount| mount.options.as_str()).unwrap_or_default();
            said.extend(lost_options(tree, options));
        }
        if plan.bound > 0 {
            said.push(format!(
                "ro: {} files outside of these trees are mounted one by one: they can be neither written nor replaced (EROFS, EBUSY), and their inodes are in memory before the launch",
                plan.bound
            ));
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

fn lost_options(tree: &Path, options: &str) -> Option<String> {
    let lost: Vec<&str> = options.split(',').filter(|option| RESTRICTING.contains(option)).collect();
    (!lost.is_empty())
        .then(|| format!("options: {} is {} on the host and not in the lab", tree.display(), lost.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restricting_options_of_the_host_that_the_lab_lacks_are_said() {
        let said = lost_options(Path::new("/opt"), "rw,nosuid,relatime,noexec");
        assert_eq!(said.as_deref(), Some("options: /opt is nosuid, noexec on the host and not in the lab"));
        assert_eq!(lost_options(Path::new("/usr"), "rw,relatime"), None);
    }
}
