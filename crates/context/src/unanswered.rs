//! A path on a file system that never answers, for tests of whoever looks at it.

use crate::hanging::Hanging;
use nix::sched::{CloneFlags, setns, unshare};
use slowpath_process::MountPoint;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// It hangs until it is dropped.
pub(crate) struct Unanswered {
    _hanging: Hanging,
    /// Who has it mounted, in a namespace of its own.
    pid: u32,
    /// The path there.
    path: PathBuf,
}

impl Unanswered {
    /// `None` with a line that says so where that cannot be.
    pub(crate) fn start() -> Option<Self> {
        // It answers no look-up (FUSE_LOOKUP) after that of its own file.
        let hanging = Hanging::start("hanging_file.py", &["1"])?;
        let pid = hanging.line.split(' ').next().and_then(|pid| pid.parse().ok()).expect("the file is mapped");
        let mounts = MountPoint::parse(&fs::read(format!("/proc/{pid}/mountinfo")).unwrap());
        let mount = mounts.into_iter().rfind(|mount| mount.kind == "fuse").expect("it is mounted");
        Some(Self { _hanging: hanging, pid, path: mount.at.join("x") })
    }

    /// The path for a process of root's outside of the namespace.
    pub(crate) fn seen_from_outside(&self) -> PathBuf {
        let inside = self.path.strip_prefix("/").unwrap();
        Path::new("/proc").join(self.pid.to_string()).join("root").join(inside)
    }

    /// Takes a thread into the namespace, and gives the path there.
    pub(crate) fn entry(&self) -> impl FnOnce() -> PathBuf + Send + use<> {
        let (pid, path) = (self.pid, self.path.clone());
        move || {
            unshare(CloneFlags::CLONE_FS).unwrap();
            let mounts = File::open(format!("/proc/{pid}/ns/mnt")).unwrap();
            setns(mounts, CloneFlags::CLONE_NEWNS).unwrap();
            path
        }
    }
}
