//! Mounts that only one thread of this process sees, for filling an image, calibrating and counting pages. The mounts
//! of a launch are made by the launcher in the launch's own namespace.

use crate::error::{LabError, failed, failed_errno};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::OFlags;
use slowpath_launch::{LeftOut, MountStep, Mounting};
use slowpath_process::{MountTable, NotOpened};
use std::os::fd::AsRawFd;
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
pub(crate) struct MountedHere {
    points: Vec<PathBuf>,
    mounting: Mounting,
}

impl MountedHere {
    /// Mounts the ext4 file system of `device` at `at`, a place of the lab's own.
    pub(crate) fn ext4(&mut self, device: &Path, at: &Path, read_only: bool) -> Result<(), LabError> {
        let flags = if read_only { MsFlags::MS_RDONLY } else { MsFlags::MS_NOATIME };
        mount(Some(device), at, Some("ext4"), flags, None::<&str>).map_err(failed_errno("mount the image at", at))?;
        self.points.push(at.to_path_buf());
        Ok(())
    }

    /// Carries one step of a launch out, exactly as the launcher does, so that it reads the same blocks. Returns the file
    /// that was left out, if it was.
    pub(crate) fn step(&mut self, step: &MountStep) -> Result<Option<LeftOut>, LabError> {
        let left_out = self.mounting.step(step).map_err(failed("mount", step.at()))?;
        if left_out.is_none() {
            self.points.push(step.at().to_path_buf());
        }
        Ok(left_out)
    }

    /// Unmounts the latest one and reports a failure, which Drop cannot. Waits while it is busy: a process that another
    /// thread of ours has just forked holds copies of all our descriptors until its exec.
    pub(crate) fn unmount_last(&mut self) -> Result<(), LabError> {
        let Some(at) = self.points.last() else { return Ok(()) };
        let end = Instant::now() + PATIENCE;
        let mut result = umount2(at, MntFlags::empty());
        while result == Err(nix::Error::EBUSY) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
            result = umount2(at, MntFlags::empty());
        }
        result.map_err(failed_errno("unmount", at))?;
        self.points.pop();
        Ok(())
    }
}

impl Drop for MountedHere {
    fn drop(&mut self) {
        while let Some(at) = self.points.pop() {
            // What is left goes with the namespace.
            let _ = detach(&at);
        }
    }
}

/// Lets go of what is mounted at a path that others may have changed since: found again without following a link, and unmounted
/// through the descriptor. A descriptor below it that is open somewhere keeps it busy; the kernel does the rest when that goes.
fn detach(at: &Path) -> Result<(), NotOpened> {
    let place = MountTable::read()?.open(at, OFlags::PATH | OFlags::CLOEXEC)?;
    let own = format!("/proc/self/fd/{}", place.as_raw_fd());
    Ok(umount2(own.as_str(), MntFlags::MNT_DETACH).map_err(std::io::Error::from)?)
}
