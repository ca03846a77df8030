//! The filters of a running process, as raw instructions. Own small module because libc has no safe form of ptrace.

use crate::error::ProcessError;
use crate::instruction::MOST_INSTRUCTIONS;
use crate::program::Program;
use std::io;
use std::time::{Duration, Instant};

/// Copies a filter of a tracee (include/uapi/linux/ptrace.h).
const PTRACE_SECCOMP_GET_FILTER: libc::c_uint = 0x420c;
/// Bytes of an instruction.
const SIZE: usize = 8;
/// Filters of one process at most: a thread has 32768 instructions in all of them (`MAX_INSNS_PER_PATH`), each filter counts 4 more.
const MOST_FILTERS: usize = (1 << 15) / 5;
/// How long a process may take to stop.
const PATIENCE: Duration = Duration::from_millis(500);

/// The filters of the first thread of a process, the oldest first. The thread stands still while they are copied; it runs on when the caller dies meanwhile.
///
/// # Errors
/// See [`ProcessError`]: the kernel shows filters to root only.
pub fn of_process(pid: u32) -> Result<Vec<Program>, ProcessError> {
    // The name of the program, which is in it, may be any bytes.
    let status = std::fs::read(format!("/proc/{pid}/status")).map_err(|_| ProcessError::NoProcess(pid))?;
    let status = String::from_utf8_lossy(&status);
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim);
    if mode != Some("2") {
        return Err(ProcessError::NoFilter(pid));
    }
    // What waits for a device would stop much later, and what is stopped already is somebody else's.
    let state = status.lines().find_map(|line| line.strip_prefix("State:")).map(str::trim_start);
    if !state.is_some_and(|state| state.starts_with(['R', 'S'])) {
        return Err(ProcessError::Busy(pid, 0));
    }
    let tracee = Tracee::stop(pid)?;
    let mut programs = Vec::new();
    while let Some(program) = tracee.filter(programs.len())? {
        programs.push(program);
        if programs.len() > MOST_FILTERS {
            break;
        }
    }
    Ok(programs)
}

/// A thread that stands still until this is dropped.
struct Tracee {
    pid: u32,
    tid: libc::pid_t,
    /// A signal that it was about to get.
    signal: i32,
}

impl Tracee {
    fn stop(pid: u32) -> Result<Self, ProcessError> {
        let tid = libc::pid_t::try_from(pid).map_err(|_| ProcessError::NoProcess(pid))?;
        request(libc::PTRACE_SEIZE, tid, 0, 0).map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => ProcessError::NoProcess(pid),
            Some(libc::EPERM) => ProcessError::Traced(pid),
            _ => ProcessError::System { pid, source: error },
        })?;
        let refused = |source| ProcessError::System { pid, source };
        request(libc::PTRACE_INTERRUPT, tid, 0, 0).map_err(refused)?;
        let began = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: the kernel writes one integer of ours.
            let waited = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
            if waited < 0 {
                return Err(refused(io::Error::last_os_error()));
            }
            if waited == tid && libc::WIFSTOPPED(status) {
                // A stop with an event is no signal's.
                let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
                return Ok(Self { pid, tid, signal });
            }
            if waited == tid {
                return Err(ProcessError::NoProcess(pid));
            }
            if began.elapsed() > PATIENCE {
                // It is let go when this process ends: what does not stand still cannot be detached from.
                return Err(ProcessError::Busy(pid, PATIENCE.as_millis()));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// The filter with this number; none after the last.
    fn filter(&self, number: usize) -> Result<Option<Program>, ProcessError> {
        let mut bytes = vec![0u8; MOST_INSTRUCTIONS * SIZE];
        let got = request(PTRACE_SECCOMP_GET_FILTER, self.tid, number, bytes.as_mut_ptr() as usize);
        let length = got.map_err(|error| match error.raw_os_error() {
            Some(libc::EACCES) => Err(ProcessError::Privilege(self.pid)),
            Some(libc::EINVAL) => Err(ProcessError::NotShown(self.pid)),
            Some(libc::ENOENT) => Ok(None),
            _ => Err(ProcessError::System { pid: self.pid, source: error }),
        });
        match length {
            Ok(length) => {
                let length = usize::try_from(length).unwrap_or_default().saturating_mul(SIZE);
                Ok(Some(Program::from_bytes(bytes.get(..length).unwrap_or_default())?))
            }
            Err(instead) => instead,
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        let signal = usize::try_from(self.signal).unwrap_or_default();
        let _ = request(libc::PTRACE_DETACH, self.tid, 0, signal);
    }
}

/// `data` is a number, or the address of room for a whole program.
fn request(what: libc::c_uint, tid: libc::pid_t, address: usize, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: of the requests made here only PTRACE_SECCOMP_GET_FILTER writes, at most 4096 instructions, to room of that size.
    match unsafe { libc::ptrace(what, tid, address, data) } {
        result if result < 0 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
