//! Ids of classic tracepoints, read through a tracefs that is mounted nowhere: a detached mount (fsopen(2)) leaves
//! the machine's mount table alone and vanishes with its descriptor.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A detached tracefs.
pub(crate) struct Tracefs {
    mount: OwnedFd,
}

/// `FSCONFIG_CMD_CREATE`, include/uapi/linux/mount.h.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let raw = i32::try_from(result).map_err(io::Error::other)?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

impl Tracefs {
    /// Opens a detached tracefs; needs `CAP_SYS_ADMIN`.
    pub(crate) fn open() -> io::Result<Self> {
        // SAFETY: plain system calls with a constant NUL-terminated name and no other pointers.
        let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 1) })?;
        // SAFETY: FSCONFIG_CMD_CREATE takes no key and no value.
        let created = unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                context.as_raw_fd(),
                FSCONFIG_CMD_CREATE,
                std::ptr::null::<u8>(),
                std::ptr::null::<u8>(),
                0,
            )
        };
        if created < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no pointers.
        let mount = descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })?;
        Ok(Self { mount })
    }

    /// Id of the tracepoint `category/name`.
    pub(crate) fn id(&self, category: &str, name: &str) -> io::Result<u64> {
        let path = format!("events/{category}/{name}/id");
        let fd = nix::fcntl::openat(
            &self.mount,
            path.as_str(),
            nix::fcntl::OFlag::O_RDONLY | nix::fcntl::OFlag::O_CLOEXEC,
            nix::sys::stat::Mode::empty(),
        )?;
        let mut text = String::new();
        std::fs::File::from(fd).read_to_string(&mut text)?;
        text.trim().parse().map_err(io::Error::other)
    }
}
