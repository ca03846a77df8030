//! What the kernel reports of a thread by system calls only. Own small module because libc has no safe form of them.

use std::io;

/// Commands of prctl (include/uapi/linux/prctl.h).
const PR_GET_SPECULATION_CTRL: libc::c_int = 52;
const PR_SCHED_CORE: libc::c_int = 62;
const PR_SCHED_CORE_GET: libc::c_ulong = 0;
/// Scope of a cookie: one thread (`PR_SCHED_CORE_SCOPE_THREAD`).
const ONE_THREAD: libc::c_ulong = 0;

/// Which `who` is a thread (include/uapi/linux/ioprio.h).
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

fn answered(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The core-scheduling cookie; 0: none.
///
/// # Errors
/// The kernel has no core scheduling (EINVAL), the CPUs no siblings (ENODEV), or it refuses.
pub(crate) fn core_cookie(tid: u32) -> io::Result<u64> {
    let mut cookie: u64 = 0;
    // SAFETY: the kernel writes 8 bytes to a number of ours.
    let result =
        unsafe { libc::prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, libc::c_ulong::from(tid), ONE_THREAD, &raw mut cookie) };
    answered(result.into()).map(|_| cookie)
}

/// Whether the calling thread may guess, and who chooses (`PR_SPEC_*`); 0 asks for stores, 1 for indirect branches.
///
/// # Errors
/// The CPU or the kernel does not offer it.
pub(crate) fn speculation(which: libc::c_ulong) -> io::Result<i32> {
    // SAFETY: takes integers and touches no memory of ours.
    let answer = answered(unsafe { libc::prctl(PR_GET_SPECULATION_CTRL, which, 0, 0, 0) }.into())?;
    i32::try_from(answer).map_err(io::Error::other)
}

/// Class and level of a thread's I/O, as `IOPRIO_PRIO_VALUE` packs them.
///
/// # Errors
/// The kernel refuses, or there is no such thread.
pub(crate) fn io_priority(tid: u32) -> io::Result<i32> {
    // SAFETY: takes two integers and touches no memory of ours.
    let priority = answered(unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid) })?;
    i32::try_from(priority).map_err(io::Error::other)
}
