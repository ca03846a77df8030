//! ptrace(2), as much as it takes to stop threads at breakpoints. Own small module because it is all unsafe.
//!
//! Every request must come from the thread that seized (the kernel's tracer is a thread); the tracer runs on one.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::ptr;
use std::time::{Duration, Instant};

pub use libc::user_regs_struct as Registers;

/// `PTRACE_EVENT_STOP`, a stop that is no signal's (include/uapi/linux/ptrace.h).
pub const EVENT_STOP: i32 = 128;

/// Bit of the signal of a stop at a system call, with `PTRACE_O_TRACESYSGOOD`.
pub const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;

/// `PTRACE_PEEKSIGINFO`, `PTRACE_GETSIGMASK`, `PTRACE_SETSIGMASK` (include/uapi/linux/ptrace.h).
const PEEK_SIGINFO: libc::c_uint = 0x4209;
const GET_MASK: libc::c_uint = 0x420a;
const SET_MASK: libc::c_uint = 0x420b;

/// `KCMP_VM` (include/uapi/linux/kcmp.h).
const KCMP_VM: libc::c_int = 1;

/// Everything that is traced dies with the tracer: a process with breakpoints and nobody who answers them would die of the first one.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

fn ask(request: libc::c_uint, tid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: callers give integers, or a pointer to memory of theirs that is as large as the request needs.
    match unsafe { libc::ptrace(request, tid, ptr::without_provenance_mut::<libc::c_void>(address), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Begins to trace a thread and all that it will make.
pub fn seize(tid: i32) -> io::Result<()> {
    ask(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize)
}

/// Has a running thread stop.
pub fn interrupt(tid: i32) -> io::Result<()> {
    ask(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Lets a stopped thread go on, with a signal or 0.
pub fn go_on(tid: i32, signal: i32) -> io::Result<()> {
    ask(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Lets a stopped thread go on to the beginning or end of its next system call, with a signal or 0.
pub fn go_on_to_call(tid: i32, signal: i32) -> io::Result<()> {
    ask(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// Leaves a thread stopped whose process was stopped by a signal, until that continues.
pub fn listen(tid: i32) -> io::Result<()> {
    ask(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Lets a stopped thread go for good, with a signal or 0.
pub fn detach(tid: i32, signal: i32) -> io::Result<()> {
    ask(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

/// What an event is about: the new thread, or the former id of one that executed.
pub fn event_message(tid: i32) -> io::Result<i32> {
    let mut message: libc::c_ulong = 0;
    ask(libc::PTRACE_GETEVENTMSG, tid, 0, (&raw mut message).expose_provenance())?;
    i32::try_from(message).map_err(|_| io::Error::from_raw_os_error(libc::ERANGE))
}

/// The word at an offset of the user area.
#[cfg(target_arch = "x86_64")]
pub fn peek_user(tid: i32, offset: usize) -> io::Result<u64> {
    nix::errno::Errno::clear();
    // SAFETY: reads the traced thread's area, no memory of ours.
    let word =
        unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, tid, ptr::without_provenance_mut::<libc::c_void>(offset), 0) };
    if word == -1 && nix::errno::Errno::last_raw() != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(word.cast_unsigned())
}

/// Sets the word at an offset of the user area.
#[cfg(target_arch = "x86_64")]
pub fn poke_user(tid: i32, offset: usize, word: u64) -> io::Result<()> {
    ask(libc::PTRACE_POKEUSER, tid, offset, word as usize)
}

/// All general registers.
#[cfg(target_arch = "x86_64")]
pub fn registers(tid: i32) -> io::Result<Registers> {
    let mut registers = MaybeUninit::<Registers>::zeroed();
    ask(libc::PTRACE_GETREGS, tid, 0, registers.as_mut_ptr().expose_provenance())?;
    // SAFETY: plain integers, zeroed and then filled by the kernel.
    Ok(unsafe { registers.assume_init() })
}

/// Sets all general registers.
#[cfg(target_arch = "x86_64")]
pub fn set_registers(tid: i32, registers: &Registers) -> io::Result<()> {
    ask(libc::PTRACE_SETREGS, tid, 0, ptr::from_ref(registers).expose_provenance())
}

/// `NT_PRSTATUS`, the general registers (include/uapi/linux/elf.h).
#[cfg(target_arch = "aarch64")]
const GENERAL: usize = 1;

/// All general registers.
#[cfg(target_arch = "aarch64")]
pub fn registers(tid: i32) -> io::Result<Registers> {
    let mut registers = MaybeUninit::<Registers>::zeroed();
    let part = libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of::<Registers>() };
    ask(libc::PTRACE_GETREGSET as libc::c_uint, tid, GENERAL, (&raw const part).expose_provenance())?;
    // SAFETY: plain integers, zeroed and then filled by the kernel.
    Ok(unsafe { registers.assume_init() })
}

/// Sets all general registers.
#[cfg(target_arch = "aarch64")]
pub fn set_registers(tid: i32, registers: &Registers) -> io::Result<()> {
    // The kernel only reads them.
    let part = libc::iovec { iov_base: ptr::from_ref(registers).cast_mut().cast(), iov_len: size_of::<Registers>() };
    ask(libc::PTRACE_SETREGSET as libc::c_uint, tid, GENERAL, (&raw const part).expose_provenance())
}

/// Lets a stopped thread run to the beginning or end of its next system call; false: it has ended.
pub fn go_to_call(tid: i32) -> bool {
    loop {
        if go_on_to_call(tid, 0).is_err() {
            return false;
        }
        let mut status = 0;
        // SAFETY: the status is valid for writes.
        let waited = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) };
        if waited < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            continue;
        }
        if waited != tid || !libc::WIFSTOPPED(status) {
            return false;
        }
        if libc::WSTOPSIG(status) == SYSTEM_CALL {
            return true;
        }
    }
}

/// `si_code` of the signal that a thread has stopped with.
pub fn signal_code(tid: i32) -> io::Result<i32> {
    let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
    ask(libc::PTRACE_GETSIGINFO, tid, 0, information.as_mut_ptr().expose_provenance())?;
    // SAFETY: plain integers, zeroed and then filled by the kernel.
    Ok(unsafe { information.assume_init() }.si_code)
}

/// Whether a trap with this `si_code` waits to be delivered to a stopped thread.
pub fn has_trap_pending(tid: i32, code: i32) -> bool {
    #[repr(C)]
    struct Arguments {
        offset: u64,
        flags: u32,
        count: i32,
    }
    const MOST: usize = 32;
    let mut arguments = Arguments { offset: 0, flags: 0, count: MOST as i32 };
    // SAFETY: all zero bytes are valid for a structure of integers.
    let mut waiting: [libc::siginfo_t; MOST] = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel reads the arguments and fills at most `MOST` entries, which there are.
    let count = unsafe { libc::ptrace(PEEK_SIGINFO, tid, &raw mut arguments, waiting.as_mut_ptr()) };
    let count = usize::try_from(count).unwrap_or(0).min(MOST);
    waiting[..count].iter().any(|one| one.si_signo == libc::SIGTRAP && one.si_code == code)
}

/// The signals that a stopped thread blocks, one bit each.
pub fn mask(tid: i32) -> io::Result<u64> {
    let mut mask = 0u64;
    ask(GET_MASK, tid, size_of::<u64>(), (&raw mut mask).expose_provenance())?;
    Ok(mask)
}

/// Sets them.
pub fn set_mask(tid: i32, mask: u64) -> io::Result<()> {
    ask(SET_MASK, tid, size_of::<u64>(), (&raw const mask).expose_provenance())
}

/// Whether two processes share their memory; none where the kernel does not tell.
pub fn share_memory(one: i32, other: i32) -> Option<bool> {
    // SAFETY: compares two tasks, no memory of ours.
    match unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) } {
        -1 => None,
        order => Some(order == 0),
    }
}

/// How a thread stopped or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is gone.
    Ended,
    /// It stopped: signal and event.
    Stopped {
        /// Signal of the stop.
        signal: i32,
        /// `PTRACE_EVENT_*`, or 0.
        event: i32,
    },
}

/// How long a thread that traces stays awake between changes that follow each other closely. In a virtual machine, being woken on a CPU
/// that sleeps takes 30 us and more, a stop itself 15.
const AWAKE: Duration = Duration::from_micros(200);

/// Waits for the changes of what this very thread traces.
#[derive(Debug, Default)]
pub struct Changes {
    /// Whether the last change came within [`AWAKE`].
    close: bool,
}

impl Changes {
    /// The next one.
    ///
    /// # Errors
    /// `EINTR`: a signal came; `ECHILD`: nothing is traced any more.
    pub fn next(&mut self) -> io::Result<(i32, Change)> {
        let began = Instant::now();
        while self.close && began.elapsed() < AWAKE {
            if let Some(change) = changed(libc::WNOHANG)? {
                return Ok(change);
            }
            // Where it shares a CPU with what it waits for.
            std::thread::yield_now();
        }
        let change = wait()?;
        self.close = began.elapsed() < AWAKE;
        Ok(change)
    }
}

/// Waits for the next change of a thread that this very thread traces.
///
/// # Errors
/// As [`Changes::next`].
pub fn wait() -> io::Result<(i32, Change)> {
    changed(0).and_then(|change| change.ok_or_else(|| ErrorKind::Interrupted.into()))
}

/// The next change of a thread that this very thread traces; none where there is none yet, with `WNOHANG`.
fn changed(options: i32) -> io::Result<Option<(i32, Change)>> {
    let mut status = 0;
    // SAFETY: the status is valid for writes. Children of other threads (the launcher) are not this one's.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD | options) };
    if tid < 0 {
        return Err(io::Error::last_os_error());
    }
    let change = if libc::WIFSTOPPED(status) {
        Change::Stopped { signal: libc::WSTOPSIG(status), event: status >> 16 }
    } else {
        Change::Ended
    };
    Ok((tid != 0).then_some((tid, change)))
}
