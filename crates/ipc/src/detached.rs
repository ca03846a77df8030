//! A file system that is mounted nowhere: only who holds its descriptor reaches it, and it ends with the last one.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `FSCONFIG_CMD_CREATE`, include/uapi/linux/mount.h.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC`.
const CLOEXEC: libc::c_uint = 1;

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let raw = i32::try_from(result).map_err(io::Error::other)?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Its root directory; of kinds that have one instance (tracefs) the same files everywhere, of others (binderfs) new ones.
///
/// # Errors
/// The kernel has no such file system (ENODEV), or the caller may not mount (EPERM).
pub(crate) fn mounted(kind: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call with a NUL-terminated name that is alive.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOEXEC) })?;
    let none = std::ptr::null::<u8>();
    // SAFETY: FSCONFIG_CMD_CREATE takes no key and no value.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no pointers.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0) })
}
