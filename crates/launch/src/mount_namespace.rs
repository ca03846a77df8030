//! The mount namespace of a launch, kept after it: later launches begin with copies of its mounts.
//!
//! It hangs on a descriptor: when the last copy of it is closed, however that process ends, the kernel takes the mounts down.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::sched::{CloneFlags, setns};
use rustix::fs::{AtFlags, StatxFlags, statx};

use crate::sys;

/// A mount namespace that is held open.
#[derive(Debug, Clone)]
pub struct MountNamespace(Arc<OwnedFd>);

impl MountNamespace {
    /// That of a process which cannot end meanwhile: one that waits in [`crate::Hooks::before_release`].
    ///
    /// # Errors
    /// The caller may not look at the process.
    pub fn of_process(pid: i32) -> io::Result<Self> {
        let file = File::open(format!("/proc/{pid}/ns/mnt"))?;
        Ok(Self(Arc::new(file.into())))
    }

    /// What a launch of this process names it by ([`crate::LaunchSpec::within`]); holds as long as this value does.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Has this process, which has one thread, enter the namespace behind a descriptor of its caller's.
///
/// # Errors
/// The kernel refuses, or the root directory there is another than here.
pub(crate) fn enter(caller: i32, descriptor: RawFd) -> io::Result<()> {
    let namespace = sys::descriptor_of(&sys::pidfd_open(caller)?, descriptor)?;
    let before = root()?;
    setns(namespace.as_fd(), CloneFlags::CLONE_NEWNS)?;
    // A process in a chroot(2) would be let out of it.
    if root()? == before { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EXDEV)) }
}

/// Which directory the root directory is.
fn root() -> io::Result<(u32, u32, u64)> {
    let found = statx(rustix::fs::CWD, "/", AtFlags::empty(), StatxFlags::INO)?;
    Ok((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}
