//! Mounts that only one thread of this process sees, for filling an image, calibrating and counting pages. The mounts
//! of a launch are made by the launcher in the launch's own namespace.

use crate::error::{LabError, failed, failed_errno};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use slowpath_launch::MountStep;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a busy mount is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `work` on a thread of its own in a fresh mount namespace from which nothing propagates to the host. Whatever
/// happens to the process, the kernel undoes the mounts with the thread.
pub(crate) fn in_private_namespace<T: Send>(work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
    let root = Path::new("/");
    thread::scope(|scope| {
        thread::Builder::new()
            .name("slowpath-lab".into())
            .spawn_scoped(scope, || {
                unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS)
                    .map_err(failed_errno("make a private mount namespace at", root))?;
                let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                mount(None::<&str>, root, None::<&str>, flags, None::<&str>)
                    .map_err(failed_errno("make the mounts private below", root))?;
                work()
            })
            .map_err(failed("start a thread in", root))?
            .join()
            .map_err(|_| LabError::Panicked)?
    })
}

/// Mount points that are unmounted, last first, when the value is dropped, so that the file system is gone before
/// [`in_private_namespace`] returns (the namespace itself is freed a little after the thread was joined).
#[derive(Default)]
pub(crate) struct MountedHere(Vec<PathBuf>);

impl MountedHere {
    /// Mounts the ext4 file system of `device` at `at`.
    pub(crate) fn ext4(&mut self, device: &Path, at: &Path, read_only: bool) -> Result<(), LabError> {
        let flags = if read_only { MsFlags::MS_RDONLY } else { MsFlags::MS_NOATIME };
        mount(Some(device), at, Some("ext4"), flags, None::<&str>).map_err(failed_errno("mount the image at", at))?;
        self.0.push(at.to_path_buf());
        Ok(())
    }

    /// Carries one step of a launch out, with the same calls as the launcher, so that it reads the same blocks.
    pub(crate) fn step(&mut self, step: &MountStep) -> Result<(), LabError> {
        let (none, at) = (None::<&str>, point_of(step));
        match step {
            MountStep::Ext4 { device, at, read_only } => return self.ext4(device, at, *read_only),
            MountStep::Overlay { lower, at } => overlay(lower, at)?,
            MountStep::Bind { from, recursive, .. } => {
                let flags = MsFlags::MS_BIND | if *recursive { MsFlags::MS_REC } else { MsFlags::empty() };
                mount(Some(from), at, none, flags, none).map_err(failed_errno("bind", at))?;
            }
            MountStep::Tmpfs { .. } => mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), Some("mode=1777"))
                .map_err(failed_errno("mount a tmpfs at", at))?,
        }
        self.0.push(at.to_path_buf());
        Ok(())
    }

    /// Unmounts the latest one and reports a failure, which Drop cannot. Waits while it is busy: a process that another
    /// thread of ours has just forked holds copies of all our descriptors until its exec.
    pub(crate) fn unmount_last(&mut self) -> Result<(), LabError> {
        let Some(at) = self.0.last() else { return Ok(()) };
        let end = Instant::now() + PATIENCE;
        let mut result = umount2(at, MntFlags::empty());
        while result == Err(nix::Error::EBUSY) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
            result = umount2(at, MntFlags::empty());
        }
        result.map_err(failed_errno("unmount", at))?;
        self.0.pop();
        Ok(())
    }
}

impl Drop for MountedHere {
    fn drop(&mut self) {
        while let Some(at) = self.0.pop() {
            if umount2(&at, MntFlags::empty()).is_err() {
                // Busy while a descriptor below it is open somewhere: let go of the tree, the kernel does the rest.
                let _ = umount2(&at, MntFlags::MNT_DETACH);
            }
        }
    }
}

/// Where a step mounts something.
pub(crate) fn point_of(step: &MountStep) -> &Path {
    match step {
        MountStep::Ext4 { at, .. } | MountStep::Overlay { at, .. } | MountStep::Tmpfs { at } => at,
        MountStep::Bind { to, .. } => to,
    }
}

/// Layers are named by descriptor, so that no byte of a path can be taken for a separator.
fn overlay(lower: &[PathBuf], at: &Path) -> Result<(), LabError> {
    let mut layers = Vec::with_capacity(lower.len());
    for path in lower {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        layers.push(File::options().read(true).custom_flags(flags).open(path).map_err(failed("open the layer", path))?);
    }
    let names: Vec<String> = layers.iter().map(|layer| format!("/proc/self/fd/{}", layer.as_raw_fd())).collect();
    let options = format!("lowerdir={}", names.join(":"));
    mount(Some("overlay"), at, Some("overlay"), MsFlags::MS_RDONLY, Some(options.as_str()))
        .map_err(failed_errno("mount the overlay at", at))
}
