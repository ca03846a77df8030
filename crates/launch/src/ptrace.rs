//! ptrace(2), as much as it takes to stop system calls and let them go on. Own small module because it is all unsafe.

use std::io;
use std::ptr;

/// `PTRACE_EVENT_STOP`: a stop of the whole process, or the first one of a new thread or of an interrupted one.
const EVENT_STOP: i32 = 128;
/// What distinguishes a stop at a system call from a trap, with `PTRACE_O_TRACESYSGOOD`.
const SYSTEM_CALL: i32 = 0x80;
/// `PR_SET_PTRACER` (include/uapi/linux/prctl.h).
const PR_SET_PTRACER: libc::c_int = 0x5961_6d61;

fn ask(request: libc::c_uint, pid: i32, data: libc::c_long) -> io::Result<()> {
    // SAFETY: the requests given to this function take integers and touch no memory of ours.
    match unsafe { libc::ptrace(request, pid, ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Allows a process that is no ancestor to trace the caller, where a security module (Yama) forbids it otherwise.
pub(crate) fn allow(pid: i32) {
    // SAFETY: takes an integer; without Yama it fails, which means that nothing forbids it.
    unsafe { libc::prctl(PR_SET_PTRACER, pid as libc::c_ulong, 0, 0, 0) };
}

/// Begins to stop the system calls of a process and of all that it will make. `tied`: they are killed when the caller ends.
pub(crate) fn seize(pid: i32, tied: bool) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | if tied { libc::PTRACE_O_EXITKILL } else { 0 };
    ask(libc::PTRACE_SEIZE, pid, options.into())?;
    ask(libc::PTRACE_INTERRUPT, pid, 0)?;
    match wait(pid)? {
        Some(stopped) => ask(libc::PTRACE_SYSCALL, stopped.pid, 0),
        None => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// A thread that stopped.
pub(crate) struct Stopped {
    pid: i32,
    signal: i32,
    event: i32,
}

/// The next stop of anything that the caller traces; none where a thread ended. `ECHILD`: nothing is left.
pub(crate) fn wait_any() -> io::Result<Option<Stopped>> {
    wait(-1)
}

fn wait(pid: i32) -> io::Result<Option<Stopped>> {
    let mut status = 0;
    // SAFETY: the status is valid for writes.
    let pid = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let stopped = || Stopped { pid, signal: libc::WSTOPSIG(status), event: status >> 16 };
    Ok(libc::WIFSTOPPED(status).then(stopped))
}

impl Stopped {
    /// Lets it go on to its next system call, or lie still where its process was stopped by a signal.
    pub(crate) fn go_on(&self) {
        let is_stop = matches!(self.signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
        let (request, signal) = match (self.event, self.signal) {
            (EVENT_STOP, _) if is_stop => (libc::PTRACE_LISTEN, 0),
            (0, signal) if signal != libc::SIGTRAP | SYSTEM_CALL => (libc::PTRACE_SYSCALL, signal),
            _ => (libc::PTRACE_SYSCALL, 0),
        };
        // One that was killed meanwhile is reported by the next wait.
        let _ = ask(request, self.pid, signal.into());
    }
}
