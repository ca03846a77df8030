//! What `sched_getattr(2)` reports of a thread and `sched_setattr(2)` sets, with its utilisation clamps, which libc's structure lacks. Own
//! small module because libc has no safe form of either.

use std::io;

/// `struct sched_attr` with the clamps (include/uapi/linux/sched/types.h, `SCHED_ATTR_SIZE_VER1`).
#[repr(C)]
#[derive(Debug, Default)]
pub struct SchedulingAttributes {
    pub(crate) size: u32,
    pub(crate) policy: u32,
    pub(crate) flags: u64,
    pub(crate) nice: i32,
    pub(crate) priority: u32,
    pub(crate) runtime: u64,
    pub(crate) deadline: u64,
    pub(crate) period: u64,
    /// Least utilisation that the scheduler assumes, of 1024.
    pub clamp_min: u32,
    /// Most.
    pub clamp_max: u32,
}

impl SchedulingAttributes {
    /// Those of a thread.
    ///
    /// # Errors
    /// The kernel refuses, or there is no such thread.
    pub fn of_thread(tid: u32) -> io::Result<Self> {
        let mut attributes = Self::default();
        let size = size_of::<Self>();
        // SAFETY: the structure is ours, and the kernel writes at most `size` bytes to it.
        answered(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, size, 0) })?;
        Ok(attributes)
    }

    /// Gives the calling thread what `size` and `flags` choose of them.
    pub(crate) fn set(&self) -> io::Result<()> {
        // SAFETY: the kernel reads `size` bytes of the structure, which are all its own.
        answered(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(self), 0) })
    }
}

fn answered(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
