//! The mounts of a launch, carried out in its private mount namespace.

use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use serde::{Deserialize, Serialize};

/// One mount, made inside the launch's private mount namespace; nothing of it is visible outside, and the kernel
/// undoes it when the last process of the namespace ends. No step sets `nosuid`, so that set-uid helpers (browser
/// sandboxes) keep working.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountStep {
    /// An ext4 file system on a block device.
    Ext4 {
        /// The block device.
        device: PathBuf,
        /// An existing directory.
        at: PathBuf,
        /// Mount read-only.
        read_only: bool,
    },
    /// A read-only overlay of at least two directories; the first in the list is on top.
    Overlay {
        /// The layers, topmost first. Any byte may stand in their names.
        lower: Vec<PathBuf>,
        /// An existing directory (it may be one of the layers).
        at: PathBuf,
    },
    /// Makes a file or directory visible at another, existing place of the same kind.
    Bind {
        /// What.
        from: PathBuf,
        /// Where.
        to: PathBuf,
        /// With the mounts below it.
        recursive: bool,
    },
    /// An empty tmpfs, mode 1777.
    Tmpfs {
        /// An existing directory.
        at: PathBuf,
    },
}

impl MountStep {
    pub(crate) fn validate(&self) -> Result<(), String> {
        let (mut paths, at): (Vec<&PathBuf>, _) = match self {
            MountStep::Ext4 { device, at, .. } => (vec![device], at),
            MountStep::Overlay { lower, at } => (lower.iter().collect(), at),
            MountStep::Bind { from, to, .. } => (vec![from], to),
            MountStep::Tmpfs { at } => (vec![], at),
        };
        if matches!(self, MountStep::Overlay { lower, .. } if lower.len() < 2) {
            return Err("a read-only overlay needs at least two layers".into());
        }
        paths.push(at);
        for path in paths {
            if !path.is_absolute() || path.as_os_str().as_bytes().contains(&0) {
                return Err(format!("`{}` is not an absolute path", path.display()));
            }
        }
        Ok(())
    }

    pub(crate) fn carry_out(&self) -> io::Result<()> {
        let none: Option<&str> = None;
        match self {
            MountStep::Ext4 { device, at, read_only } => {
                let flags = if *read_only { MsFlags::MS_RDONLY } else { MsFlags::empty() };
                mount(Some(device), at, Some("ext4"), flags, none)?;
            }
            MountStep::Overlay { lower, at } => mount_overlay(lower, at)?,
            MountStep::Bind { from, to, recursive } => {
                let flags = MsFlags::MS_BIND | if *recursive { MsFlags::MS_REC } else { MsFlags::empty() };
                mount(Some(from), to, none, flags, none)?;
            }
            MountStep::Tmpfs { at } => mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), Some("mode=1777"))?,
        }
        Ok(())
    }
}

/// Layers are named by descriptor (`/proc/self/fd/N`): no byte of a path needs an escape, whose rules changed
/// between kernels, and long lists fit the page that `mount(2)` takes.
fn mount_overlay(lower: &[PathBuf], at: &Path) -> io::Result<()> {
    let open = |path: &PathBuf| {
        File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC).open(path)
    };
    let layers = lower.iter().map(open).collect::<io::Result<Vec<File>>>()?;
    let names: Vec<String> = layers.iter().map(|layer| format!("/proc/self/fd/{}", layer.as_raw_fd())).collect();
    let options = CString::new(format!("lowerdir={}", names.join(":"))).map_err(io::Error::other)?;
    Ok(mount(Some("overlay"), at, Some("overlay"), MsFlags::MS_RDONLY, Some(options.as_c_str()))?)
}

impl fmt::Display for MountStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MountStep::Ext4 { device, at, read_only } => {
                let mode = if *read_only { "read-only" } else { "read-write" };
                write!(f, "ext4 of {} at {}, {mode}", device.display(), at.display())
            }
            MountStep::Overlay { lower, at } => write!(f, "overlay of {} layers at {}", lower.len(), at.display()),
            MountStep::Bind { from, to, .. } => write!(f, "bind {} at {}", from.display(), to.display()),
            MountStep::Tmpfs { at } => write!(f, "tmpfs at {}", at.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_of_one_layer_and_a_relative_path_are_refused() {
        let at = PathBuf::from("/mnt");
        assert!(MountStep::Overlay { lower: vec!["/a".into()], at: at.clone() }.validate().is_err());
        assert!(MountStep::Overlay { lower: vec!["/a".into(), "/b".into()], at: at.clone() }.validate().is_ok());
        assert!(MountStep::Bind { from: "a".into(), to: at, recursive: false }.validate().is_err());
    }
}
