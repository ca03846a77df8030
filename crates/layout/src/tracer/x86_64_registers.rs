//! Registers of x86-64: where a thread is, where it goes on, and the calls that it makes.

use super::{Action, call_behind};
use crate::tracer::ptrace::{self, Registers};
use std::io;

/// Address of the breakpoint at which a thread has stopped: the instruction pointer is behind it.
pub fn stopped_at(tid: i32) -> io::Result<u64> {
    ptrace::peek_user(tid, INSTRUCTION_POINTER).map(|after| after.wrapping_sub(1))
}

/// Has a stopped thread go on at an address.
pub fn go_on_at(tid: i32, address: u64) -> io::Result<()> {
    ptrace::poke_user(tid, INSTRUCTION_POINTER, address)
}

/// Offset of `rip` in the user area.
const INSTRUCTION_POINTER: usize = std::mem::offset_of!(libc::user, regs) + std::mem::offset_of!(Registers, rip);

/// Where code of a file was mapped, if that is what a thread has just done at the end of a system call.
pub fn mapped_code(registers: &Registers) -> Option<u64> {
    let returned = registers.rax.cast_signed();
    // At its beginning the result is -ENOSYS.
    let has_failed = (-4095..0).contains(&returned);
    let is_mmap = registers.orig_rax == libc::SYS_mmap.cast_unsigned();
    let executable = registers.rdx & libc::PROT_EXEC as u64 != 0;
    let of_file = registers.r10 & libc::MAP_ANONYMOUS as u64 == 0;
    (is_mmap && !has_failed && executable && of_file).then_some(registers.rax)
}

/// Has a stopped thread go on behind such a breakpoint, as if its first instruction had run.
pub fn go_on_to_set(tid: i32, place: u64) -> io::Result<()> {
    let mut registers = ptrace::registers(tid)?;
    registers.rax = libc::SYS_rt_sigaction.cast_unsigned();
    registers.rip = call_behind(place);
    ptrace::set_registers(tid, &registers)
}

/// Where the new action stands that a thread is about to set for a signal; none where it sets none.
pub fn sets_action(registers: &Registers, signal: i32) -> Option<u64> {
    let is_meant = registers.rdi as i32 == signal && registers.r10 == size_of::<u64>() as u64;
    (is_meant && registers.rsi != 0).then_some(registers.rsi)
}

/// Registers with which a thread sets the action of a signal, and where that action has to stand: below its stack, and below what leaf
/// functions keep there (the red zone of 128 bytes, System V ABI).
pub fn call_to_set_action(before: &Registers, call: u64, signal: i32) -> (Registers, u64) {
    let at = before.rsp.wrapping_sub(128 + Action::BYTES as u64) & !15;
    let mut during = *before;
    during.rip = call;
    during.rax = libc::SYS_rt_sigaction.cast_unsigned();
    // No call is under way that could be restarted.
    during.orig_rax = u64::MAX;
    during.rdi = signal as u64;
    during.rsi = at;
    during.rdx = 0;
    during.r10 = size_of::<u64>() as u64;
    (during, at)
}
