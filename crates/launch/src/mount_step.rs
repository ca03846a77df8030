//! The mounts of a launch as data; `mounting` carries them out.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slowpath_process::FileIdentity;

use crate::SeenFile;

/// One mount, made inside the launch's private mount namespace; nothing of it is visible outside, and the kernel
/// undoes it when the last process of the namespace ends. No path may hold a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountStep {
    /// An ext4 file system on a block device: `nosuid`, `nodev` and `noexec`, a store whose files [`MountStep::File`] and
    /// [`MountStep::Overlay`] show where they belong.
    Ext4 {
        /// The block device.
        device: PathBuf,
        /// An existing directory.
        at: PathBuf,
        /// Mount read-only.
        read_only: bool,
    },
    /// A read-only overlay of at least two directories; the first in the list is on top. It has the restricting options
    /// (`nosuid`, `nodev`, `noexec`) of what it covers.
    Overlay {
        /// The layers, topmost first. Any byte may stand in their names.
        lower: Vec<PathBuf>,
        /// An existing directory (it may be one of the layers).
        at: PathBuf,
    },
    /// Makes a file or directory visible at another, existing place of the same kind, with the options of where it is from.
    Bind {
        /// What.
        from: PathBuf,
        /// Where.
        to: PathBuf,
        /// With the mounts below it.
        recursive: bool,
    },
    /// Puts the copy of a file over that very file: left out when another one stands there. It has the restricting options
    /// of what it covers, and `nosuid` and `nodev` when it is not root's.
    File {
        /// The copy.
        from: PathBuf,
        /// The file.
        over: PathBuf,
        /// Which file it was when it was copied.
        was: FileIdentity,
    },
    /// A file or directory is seen otherwise than it is, by a copy or an overlay of its own. What the launch writes there goes with it.
    /// A directory comes before what lies below it. It has the restricting options of what it covers, and `nosuid` and `nodev` when it
    /// is not root's.
    Seen(Box<SeenFile>),
    /// Nobody can write to what is mounted at this place any more, in this launch.
    ReadOnly {
        /// Where something is mounted.
        at: PathBuf,
    },
    /// An empty tmpfs, mode 1777, `nosuid` and `nodev`.
    Tmpfs {
        /// An existing directory.
        at: PathBuf,
    },
}

/// Why a [`MountStep::File`] was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// There is no such file any more.
    Gone,
    /// Another file, a symbolic link or a mount stands there by now.
    Replaced,
    /// Its file system is served by a user's process or another machine by now.
    MayNeverAnswer,
}

/// A file whose copy was not put over it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: LeftOutReason,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            LeftOutReason::Gone => "is gone",
            LeftOutReason::Replaced => "is another file than the one that was copied",
            LeftOutReason::MayNeverAnswer => "is now on a network or user-space file system",
        };
        write!(f, "{} {why}", self.path.display())
    }
}

impl MountStep {
    pub(crate) fn validate(&self) -> Result<(), String> {
        let (mut paths, at): (Vec<&PathBuf>, _) = match self {
            MountStep::Ext4 { device, at, .. } => (vec![device], at),
            MountStep::Overlay { lower, at } => (lower.iter().collect(), at),
            MountStep::Bind { from, to, .. } => (vec![from], to),
            MountStep::File { from, over, .. } => (vec![from], over),
            MountStep::Seen(file) => (vec![], &file.path),
            MountStep::Tmpfs { at } | MountStep::ReadOnly { at } => (vec![], at),
        };
        if let MountStep::Seen(file) = self {
            file.validate()?;
        }
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

    /// Where it mounts something.
    pub fn at(&self) -> &Path {
        match self {
            MountStep::Ext4 { at, .. }
            | MountStep::Overlay { at, .. }
            | MountStep::Tmpfs { at }
            | MountStep::ReadOnly { at } => at,
            MountStep::Bind { to, .. } => to,
            MountStep::File { over, .. } => over,
            MountStep::Seen(file) => &file.path,
        }
    }
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
            MountStep::File { over, .. } => write!(f, "copy of {} over it", over.display()),
            MountStep::Seen(file) => file.fmt(f),
            MountStep::ReadOnly { at } => write!(f, "{} read-only", at.display()),
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
