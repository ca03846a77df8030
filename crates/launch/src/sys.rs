//! System calls for which no safe wrapper exists, each with one.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::{Exit, TreeUsage};

/// `CLOCK_MONOTONIC` in ns.
pub(crate) fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes; CLOCK_MONOTONIC exists on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets and clears attributes of a mount that is open and attached nowhere yet (mount_setattr(2), Linux 5.12).
pub(crate) fn set_mount_attributes(mount: &impl AsRawFd, set: u64, clear: u64) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    // SAFETY: an open descriptor, an empty NUL-terminated path, and a structure of the size that is passed.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// Forks the calling process. `None` in the child.
///
/// # Safety
/// The process must have one thread only, so that the child may do anything.
pub(crate) unsafe fn fork() -> io::Result<Option<i32>> {
    // SAFETY: the caller promises a single thread.
    let pid = check(unsafe { libc::fork() }.into())?;
    Ok((pid != 0).then_some(pid as i32))
}

/// The stack of a child made by [`spawn_sharing_memory`].
pub(crate) struct ChildStack(Box<[u8]>);

impl ChildStack {
    /// Bytes: an exec needs little, looking up why one failed some KiB.
    const SIZE: usize = 256 << 10;

    pub(crate) fn new() -> Self {
        Self(vec![0; Self::SIZE].into_boxed_slice())
    }
}

/// Runs `child` in a new process that shares the caller's memory, while the caller waits until it has called `execve` or
/// ended: as posix_spawn(3) does it, and for the same reason. A fork copies page tables, and both sides then take a fault
/// at each page that they write; all that would be paid between the launches, and by the target.
///
/// # Safety
/// The process must have one thread only. `child` may change memory only as the caller expects to find it, and must leave
/// by `execve` or [`exit_now`].
pub(crate) unsafe fn spawn_sharing_memory(stack: &mut ChildStack, child: &mut dyn FnMut()) -> io::Result<i32> {
    extern "C" fn run(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the address of the caller's `child`, which lives while the caller waits.
        let child = unsafe { &mut *argument.cast::<&mut dyn FnMut()>() };
        child();
        127
    }
    let mut child = child;
    let argument: *mut &mut dyn FnMut() = &mut child;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: one past the end of the stack, which grows down; rounded to what every ABI asks of a stack. The caller
    // promises the rest.
    let pid = unsafe {
        let top = stack.0.as_mut_ptr().add(ChildStack::SIZE);
        let top = top.sub(top.addr() % 16);
        libc::clone(run, top.cast(), flags, argument.cast())
    };
    check(pid.into()).map(|pid| pid as i32)
}

/// Ends the calling process at once; nothing of the caller's is flushed or run.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(code) }
}

/// Waits until a child has ended, at most `limit`. Where SIGCHLD is not blocked it waits that long.
pub(crate) fn wait_for_child(limit: Duration) {
    let mut signals = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let time = libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: sigemptyset initialises the set; the time is valid for reads, and no information is asked for.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGCHLD);
        libc::sigtimedwait(signals.as_ptr(), ptr::null_mut(), &time);
    }
}

/// A descriptor of the process `pid`; readable once it is a zombie or gone.
pub(crate) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel just made this descriptor for us alone (close-on-exec).
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// A copy of a descriptor of the process behind one of [`pidfd_open`], which must be one that the caller may trace.
pub(crate) fn descriptor_of(pidfd: &OwnedFd, descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), descriptor, 0) })?;
    // SAFETY: the kernel just made this descriptor for us alone (close-on-exec).
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// SIGKILL to the process behind a descriptor of [`pidfd_open`].
pub(crate) fn pidfd_kill(pidfd: &OwnedFd) -> io::Result<()> {
    let info = ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo asks for the one that kill(2) makes.
    check(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), libc::SIGKILL, info, 0) }).map(drop)
}

/// A number that the calling process shares with all children that it forks from here on; it lasts as long as they do.
pub(crate) fn shared_number() -> io::Result<&'static AtomicU64> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that is there.
    let page = unsafe { libc::mmap(ptr::null_mut(), size_of::<AtomicU64>(), protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is page-aligned, zeroed, large enough, and never unmapped.
    Ok(unsafe { AtomicU64::from_ptr(page.cast()) })
}

/// Copies a descriptor to another number, not close-on-exec. What was there is closed, whoever owns it: for a process that is about to
/// become another program.
pub(crate) fn copy_to(descriptor: &OwnedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::dup2(descriptor.as_raw_fd(), number) }.into()).map(drop)
}

/// Closes all descriptors above standard error but `keep`.
pub(crate) fn close_all_but(keep: &mut [RawFd]) {
    keep.sort_unstable();
    let mut first: libc::c_uint = 3;
    let close = |first: libc::c_uint, last: libc::c_uint| {
        if first <= last {
            // SAFETY: called at the start of the launcher, before it owns any descriptor besides those kept.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    };
    for fd in keep.iter().map(|fd| *fd as libc::c_uint) {
        close(first, fd.saturating_sub(1));
        first = fd + 1;
    }
    close(first, libc::c_uint::MAX);
}

/// Ties the life of the calling process to the thread that forked it: SIGKILL when that ends. The caller has to
/// check afterwards that it had not ended before.
pub(crate) fn die_with_parent() -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }.into()).map(drop)
}

/// Nobody but root may trace the calling process, read its memory or take its descriptors, until an exec
/// (`PR_SET_DUMPABLE`; ptrace(2), "Ptrace access mode checking").
pub(crate) fn shield() -> io::Result<()> {
    // SAFETY: takes integers and touches no memory of ours.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }.into()).map(drop)
}

/// A new session keyring in place of the inherited one, whose keys the process then does not possess any more (keyrings(7)).
pub(crate) fn leave_session_keyring() -> io::Result<()> {
    /// `KEYCTL_JOIN_SESSION_KEYRING` (include/uapi/linux/keyctl.h); without a name it makes one.
    const JOIN: libc::c_long = 1;
    // SAFETY: a null name asks for a keyring without one.
    match check(unsafe { libc::syscall(libc::SYS_keyctl, JOIN, ptr::null::<libc::c_char>()) }) {
        // Kernels without keys, and containers whose filter refuses all calls that could use one.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Ok(()),
        done => done.map(drop),
    }
}

/// Orphans among the descendants become children of the calling process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }.into()).map(drop)
}

/// Gives the calling process a name of at most 15 bytes, shown by `ps`.
pub(crate) fn set_name(name: &std::ffi::CStr) {
    // SAFETY: a NUL-terminated string; the kernel copies at most 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Ignores a signal.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: no handler runs.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// The signals that the calling process ignores, inherited ones included. `execve` resets handlers, but not these.
pub(crate) fn ignored_signals() -> Vec<i32> {
    let is_ignored = |signal: &i32| {
        let mut now = [0u64; 8];
        // SAFETY: the buffer is larger than the kernel's sigaction on every architecture, whose first word is the handler.
        let result = unsafe { libc::syscall(libc::SYS_rt_sigaction, *signal, ptr::null::<u64>(), now.as_mut_ptr(), 8) };
        result == 0 && now[0] == libc::SIG_IGN as u64
    };
    (1..=64).filter(is_ignored).collect()
}

/// Default dispositions of these signals and an empty mask, as `execve` should find them.
pub(crate) fn reset_signals(ignored: &[i32]) {
    // The kernel's own call, because the C library refuses signals 32 and 33, which a caller may have inherited as
    // ignored. All zero: SIG_DFL, no flags, no mask.
    let default = [0u64; 8];
    for signal in ignored {
        let none = ptr::null_mut::<u64>();
        // SAFETY: the buffer is larger than the kernel's sigaction on every architecture, and only read.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, *signal, default.as_ptr(), none, 8) };
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set, which sigprocmask then reads.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// Whether a child has ended and waits to be reaped.
pub(crate) fn has_ended(pid: i32) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the out pointer is valid for writes; nothing is reaped.
    let result = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), options) };
    // SAFETY: zeroed before, and filled by the kernel where a child was found.
    result == 0 && unsafe { info.assume_init().si_pid() } == pid
}

/// A child that ended.
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    pub(crate) exit: Exit,
    pub(crate) usage: TreeUsage,
}

/// Reaps one child without waiting: `Ok(None)` when children are left but none has ended, an `ECHILD` error when
/// there is none.
pub(crate) fn reap() -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both out pointers are valid for writes.
    let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG | libc::__WALL, usage.as_mut_ptr()) };
    if check(pid.into())? == 0 {
        return Ok(None);
    }
    // SAFETY: zeroed before, and filled by the kernel; every bit pattern is a valid rusage.
    let usage = unsafe { usage.assume_init() };
    let time = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    let exit = match libc::WIFSIGNALED(status) {
        true => Exit::Signal(libc::WTERMSIG(status)),
        false => Exit::Code(libc::WEXITSTATUS(status)),
    };
    let usage = TreeUsage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        blocks_in: usage.ru_inblock as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        // Linux counts in KiB.
        largest_rss: usage.ru_maxrss as u64 * 1024,
        reaped: 1,
        lacks_children: false,
    };
    Ok(Some(Reaped { pid, exit, usage }))
}

/// `execve`; returns only to say why not.
pub(crate) fn exec(path: &std::ffi::CStr, argv: &[*const libc::c_char], envp: &[*const libc::c_char]) -> io::Error {
    debug_assert!(argv.last().is_some_and(|last| last.is_null()) && envp.last().is_some_and(|last| last.is_null()));
    // SAFETY: both lists end with a null pointer, and their strings outlive the call (callers hold them).
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    io::Error::last_os_error()
}
