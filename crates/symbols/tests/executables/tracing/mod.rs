//! A traced child: stopping after each instruction, and reading its memory.

use slowpath_symbols::walk::Registers;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::ptr::null_mut;

/// Why the child stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal is about to be delivered (SIGTRAP: the breakpoint or the step).
    Signal(i32),
    /// It is gone.
    Ended,
}

/// A child under ptrace, killed when dropped.
pub struct Tracee {
    child: Child,
    memory: File,
}

impl Tracee {
    /// Starts a program, stopped before its first instruction; none where ptrace is refused.
    pub fn start(program: &Path, arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new(program);
        command.args(arguments);
        // What glibc binds lazily must not be decided by this test's environment.
        command.env_remove("LD_BIND_NOW");
        let trace_me = || {
            // SAFETY: a system call without pointers, in the child before exec.
            match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: the closure makes one system call.
        let child = unsafe { command.pre_exec(trace_me) }.spawn().ok()?;
        let memory = File::open(format!("/proc/{}/mem", child.id()));
        let tracee = Self { memory: memory.ok()?, child };
        assert_eq!(tracee.wait(), Stop::Signal(libc::SIGTRAP));
        Some(tracee)
    }

    fn pid(&self) -> libc::pid_t {
        self.child.id() as libc::pid_t
    }

    fn wait(&self) -> Stop {
        let mut status = 0;
        // SAFETY: status is a live local.
        let waited = unsafe { libc::waitpid(self.pid(), &mut status, 0) };
        match waited == self.pid() && libc::WIFSTOPPED(status) {
            true => Stop::Signal(libc::WSTOPSIG(status)),
            false => Stop::Ended,
        }
    }

    fn resume(&self, request: libc::c_uint, signal: i32) -> Stop {
        // SAFETY: neither request reads or writes this process's memory.
        unsafe { libc::ptrace(request, self.pid(), null_mut::<u8>(), i64::from(signal)) };
        self.wait()
    }

    /// Runs to the next signal.
    pub fn go_on(&mut self) -> Stop {
        self.resume(libc::PTRACE_CONT, 0)
    }

    /// Runs one instruction, after delivering a signal unless it is 0 (then it stops at the handler's first).
    pub fn step(&mut self, signal: i32) -> Stop {
        self.resume(libc::PTRACE_SINGLESTEP, signal)
    }

    /// The registers.
    pub fn registers(&self) -> Registers {
        // SAFETY: plain integers; the kernel fills them.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: registers is a live local of the type that the request writes.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid(), null_mut::<u8>(), &mut registers) };
        assert_eq!(result, 0);
        Registers { ip: registers.rip, sp: registers.rsp, bp: registers.rbp }
    }

    /// Eight bytes of its memory.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Its memory.
    pub fn copy(&self, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = vec![0; (to - from) as usize];
        self.memory.read_exact_at(&mut bytes, from).unwrap();
        bytes
    }

    /// The text of its mappings.
    pub fn maps(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap()
    }

    /// Where the main thread's stack ends.
    pub fn stack_end(&self) -> u64 {
        let maps = self.maps();
        let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let end = line.split([' ', '-']).nth(1).unwrap();
        u64::from_str_radix(end, 16).unwrap()
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
