//! Keeps the lab's file system alive between two launches, so that the second one is warm: a mount that is attached
//! nowhere (fsmount(2)) shares the superblock with the mounts of the launches, and vanishes with its descriptor.

use crate::{Lab, LabError};
use rustix::fd::OwnedFd;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::mount::{fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen};
use std::path::Path;

/// While it lives, pages of the lab's files stay in memory; when it is dropped, the next launch is cold again.
#[derive(Debug)]
pub struct KeptMounted {
    _mount: OwnedFd,
}

fn mount_detached(device: &Path) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", device)?;
    fsconfig_set_flag(&context, "ro")?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

impl Lab {
    /// Mounts the image where nobody sees it, so that what one launch reads is still there for the next.
    ///
    /// # Errors
    /// The kernel refuses the mount.
    pub fn keep_mounted(&self) -> Result<KeptMounted, LabError> {
        let device = mount_detached(&self.device().path()).map_err(|errno| LabError::KeepMounted(errno.into()))?;
        Ok(KeptMounted { _mount: device })
    }
}
