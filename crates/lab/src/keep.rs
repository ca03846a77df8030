//! Keeps the lab's file system alive between two launches, so that the second one is warm: a mount that is attached
//! nowhere (fsmount(2)) shares the superblock with the mounts of the launches, and vanishes with its descriptor.

use crate::{Lab, LabError};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// `enum fsconfig_command`, include/uapi/linux/mount.h.
const SET_FLAG: libc::c_uint = 0;
const SET_STRING: libc::c_uint = 1;
const CREATE: libc::c_uint = 6;
/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC`.
const CLOEXEC: libc::c_uint = 1;

/// While it lives, pages of the lab's files stay in memory; when it is dropped, the next launch is cold again.
#[derive(Debug)]
pub struct KeptMounted {
    _mount: OwnedFd,
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    let raw = i32::try_from(result).map_err(io::Error::other)?;
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn configure(context: &OwnedFd, command: libc::c_uint, key: Option<&CStr>, value: Option<&CStr>) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: key and value are NUL-terminated and outlive the call, or null where the command takes none.
    let result =
        unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, pointer(key), pointer(value), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn mount_detached(device: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a constant NUL-terminated name and an integer.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, c"ext4".as_ptr(), CLOEXEC) })?;
    configure(&context, SET_STRING, Some(c"source"), Some(device))?;
    configure(&context, SET_FLAG, Some(c"ro"), None)?;
    configure(&context, CREATE, None, None)?;
    // SAFETY: integers only.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0) })
}

impl Lab {
    /// Mounts the image where nobody sees it, so that what one launch reads is still there for the next.
    ///
    /// # Errors
    /// The kernel refuses the mount.
    pub fn keep_mounted(&self) -> Result<KeptMounted, LabError> {
        let path = self.device().path();
        let device = CString::new(path.as_os_str().as_bytes())
            .map_err(io::Error::other)
            .and_then(|device| mount_detached(&device))
            .map_err(LabError::KeepMounted)?;
        Ok(KeptMounted { _mount: device })
    }
}
