//! What a program does with SIGTRAP, kept for it.
//!
//! At a breakpoint the kernel sends SIGTRAP by force: where the thread blocks it, or the process ignores it, the action becomes the default
//! one and the signal is unblocked (`force_sig_info_to_task`, kernel/signal.c). A handler of the program's own that calls a function for
//! the first time would lose itself that way. So what programs set is watched where they set it (rt_sigaction(2)), and set again where it is
//! gone.

use super::action::Action;
use super::machine;
use super::memory::Memory;
use super::ptrace;
use slowpath_process::{status_field, status_of};
use std::collections::HashMap;

/// The signals that the kernel raises for a fault (`SYNCHRONOUS_MASK`, kernel/signal.c) but SIGTRAP, one bit each.
const OF_FAULTS: u64 = bit(libc::SIGILL) | bit(libc::SIGFPE) | bit(libc::SIGSEGV) | bit(libc::SIGBUS);
const TRAP: u64 = bit(libc::SIGTRAP);

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The actions of all processes that have another than the default one.
#[derive(Debug, Default)]
pub(super) struct Dispositions {
    actions: HashMap<i32, Action>,
}

/// Whether a field of `/proc/PID/status`, a set of signals, has SIGTRAP.
fn has_trap(status: &str, field: &str) -> bool {
    status_field(status, field).and_then(|set| u64::from_str_radix(set, 16).ok()).is_some_and(|set| set & TRAP != 0)
}

impl Dispositions {
    /// A process that begins, or has executed a program: what was ignored stays so.
    pub fn begun(&mut self, process: i32) {
        self.actions.remove(&process);
        let status = status_of(process).unwrap_or_default();
        if has_trap(&status, "SigIgn") {
            self.actions.insert(process, Action::IGNORED);
        }
    }

    /// A process that another has made.
    pub fn forked(&mut self, maker: i32, process: i32) {
        if let Some(action) = self.actions.get(&maker).copied().filter(|_| maker != process) {
            self.actions.insert(process, action);
        }
    }

    /// A process that has ended.
    pub fn ended(&mut self, process: i32) {
        self.actions.remove(&process);
    }

    /// A thread is about to set an action.
    pub fn sets(&mut self, tid: i32, process: i32, memory: &Memory) {
        let Ok(registers) = ptrace::registers(tid) else { return };
        let Some(at) = machine::sets_action(&registers, libc::SIGTRAP) else { return };
        let mut bytes = [0; Action::BYTES];
        if memory.read(at, &mut bytes).is_err() {
            return;
        }
        match Action::of(bytes) {
            Action::DEFAULT => self.actions.remove(&process),
            action => self.actions.insert(process, action),
        };
    }

    /// SIGTRAP is delivered to a process, whose handler may be for one time.
    pub fn delivered(&mut self, process: i32) {
        if self.actions.get(&process).is_some_and(|action| action.is_for_one_time()) {
            self.actions.remove(&process);
        }
    }

    /// A thread has hit a breakpoint: sets again what the kernel has changed for that.
    pub fn keep(&self, tid: i32, process: i32, memory: &Memory) {
        let was_blocked = match self.actions.get(&process) {
            None => false,
            Some(action) => {
                let status = status_of(tid).unwrap_or_default();
                if has_trap(&status, "SigCgt") || has_trap(&status, "SigIgn") {
                    return;
                }
                if let Some(call) = memory.call() {
                    set_action(tid, call, action, memory);
                }
                // A handler is taken away from a thread that blocks the signal only.
                *action != Action::IGNORED
            }
        };
        // Nothing shows the default action; but who blocks all other signals of faults blocks this one too.
        let Ok(mask) = ptrace::mask(tid) else { return };
        if mask & TRAP == 0 && (was_blocked || mask & OF_FAULTS == OF_FAULTS) {
            let _ = ptrace::set_mask(tid, mask | TRAP);
        }
    }
}

/// Has a stopped thread set the action of SIGTRAP, by the system call instruction at `call`; it is where it was afterwards, and no other
/// signal comes in between.
fn set_action(tid: i32, call: u64, action: &Action, memory: &Memory) {
    let (Ok(before), Ok(mask)) = (ptrace::registers(tid), ptrace::mask(tid)) else { return };
    let (during, at) = machine::call_to_set_action(&before, call, libc::SIGTRAP);
    if memory.write(at, &action.bytes()).is_err() || ptrace::set_mask(tid, u64::MAX).is_err() {
        return;
    }
    if ptrace::set_registers(tid, &during).is_ok() {
        // Its beginning and its end.
        for _ in 0..2 {
            if !ptrace::go_to_call(tid) {
                return;
            }
        }
    }
    let _ = ptrace::set_registers(tid, &before);
    let _ = ptrace::set_mask(tid, mask);
}
