//! How the kernel schedules a thread: policy, priority and nice as asked for, the effective priority as it is, and the
//! CPU. Reading and setting for the calling thread only.

use slowpath_process::StatLine;
use std::io;

/// Priority of the real-time callers: the highest of SCHED_FIFO (sched(7)).
pub const FIFO_PRIORITY: i32 = 99;

/// What a thread asked for (sched_getattr(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `SCHED_OTHER`, `SCHED_FIFO`, ...
    pub policy: u32,
    /// 1 to 99 under a real-time policy, else 0.
    pub priority: u32,
    /// -20 to 19.
    pub nice: i32,
}

impl Asked {
    /// Whether it is under SCHED_FIFO or SCHED_RR.
    pub fn is_real_time(self) -> bool {
        i32::try_from(self.policy).is_ok_and(|policy| matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR))
    }
}

/// `struct sched_attr` in its first version, include/uapi/linux/sched/types.h.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Of the calling thread.
pub fn asked() -> io::Result<Asked> {
    let mut attributes = Attributes::default();
    // SAFETY: the kernel writes at most the size given, which is the structure's.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size_of::<Attributes>(), 0) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Asked { policy: attributes.policy, priority: attributes.priority, nice: attributes.nice })
}

/// Makes the calling thread SCHED_FIFO, and reads back that it is.
///
/// # Errors
/// Neither root nor allowed by RLIMIT_RTPRIO, or in a cgroup without real-time budget.
pub fn become_fifo(priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter is alive; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } != 0 {
        return Err(io::Error::last_os_error());
    }
    match asked()? {
        is if is.is_real_time() => Ok(()),
        _ => Err(io::Error::other("the kernel took SCHED_FIFO and did not apply it")),
    }
}

/// Sets the nice value of the calling thread (in Linux it belongs to the thread).
pub fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: no pointers; 0 is the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The CPU that the thread runs on.
pub fn cpu() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::sched_getcpu() }.unsigned_abs()
}

/// Thread id of the calling thread.
pub fn thread() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Keeps the calling thread, and what it starts later, on one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu)?;
    Ok(nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)?)
}

/// The CPUs that the calling thread may use.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))?;
    Ok((0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect())
}

/// State and effective priority of a thread (proc_pid_stat(5), fields 3 and 18).
///
/// Field 18 is the priority in force, inherited ones included, which sched_getattr(2) does not show: 20 + nice for normal
/// threads, -1 - priority for real-time ones (-100 for FIFO 99).
fn of_stat(line: &StatLine) -> Option<(char, i32)> {
    Some((line.state()?, line.field(18)?))
}

/// What `of_stat` says of a thread of any process; `None` when it is gone.
pub fn effective(process: u32, thread: u32) -> Option<(char, i32)> {
    of_stat(&StatLine::of_thread(process, thread)?)
}

/// CPU time of the calling process in ns.
pub fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread in ns.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CLOCK_MONOTONIC in ns, the clock of the traces too.
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// A clock in ns; 0 where there is none, which is no clock used here.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the time.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Sleeps until a moment of [`now_ns`].
pub fn sleep_until(moment_ns: u64) {
    let seconds = libc::time_t::try_from(moment_ns / 1_000_000_000).unwrap_or(libc::time_t::MAX);
    let moment = libc::timespec { tv_sec: seconds, tv_nsec: (moment_ns % 1_000_000_000).cast_signed() };
    // SAFETY: the time is alive; an interrupted sleep is begun again.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const moment, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_priority_is_field_18_whatever_the_command_is_called() {
        let line = "42 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 -100 0 4 0";
        let read = |line: &str| of_stat(&StatLine::parse(line.as_bytes())?);
        assert_eq!(read(line), Some(('S', -100)));
        assert_eq!(read("42 (cut) S 1 2"), None);
    }

    #[test]
    fn a_thread_reads_its_own_priority() {
        let own = effective(std::process::id(), thread()).unwrap();
        assert_eq!(own.1, 20 + asked().unwrap().nice);
    }
}
