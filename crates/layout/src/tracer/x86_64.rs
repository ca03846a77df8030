//! Everything that is particular to x86-64: the breakpoint, where a function may have one, registers, and the calls that it makes.
//!
//! Nothing beside this file, and [its like](super::machine) for other machines, knows an instruction or a register.

use super::action::Action;
use super::breakpoint;
use super::ptrace::{self, Registers};
use memchr::memmem;
use std::io;
use std::ops::Range;

/// Name of the machine in a trace.
pub const MACHINE: &str = "x86_64";

/// Where the breakpoint of a function stands.
pub type Point = breakpoint::Point<WIDTH>;
/// A function that does nothing, which is stopped at every time.
pub type Hook = breakpoint::Hook<WIDTH>;

/// Bytes of a breakpoint, and so of what stood in its place.
pub const WIDTH: usize = 1;

/// `int3`, one byte: whole or not there for every other thread (Intel SDM 3, "Breakpoint Exception").
pub const BREAKPOINT: [u8; WIDTH] = [0xcc];

/// `si_code` of the signal that a breakpoint raises (`do_int3_user`, arch/x86/kernel/traps.c).
pub const BREAKPOINT_CODE: i32 = libc::SI_KERNEL;

/// `endbr64`, where an indirect branch may land under CET. A breakpoint stands behind it: on the landing place itself it would be a
/// violation, and an unwinder or a patcher may look for it.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// `ret`.
const RETURN: u8 = 0xc3;

/// `rep ret`, as old compilers make it.
const REP_RETURN: [u8; 2] = [0xf3, 0xc3];

/// The place for the breakpoint of a function with this code; none where it has none of its own, or one already.
pub fn point(code: &[u8]) -> Option<Point> {
    let skip = if code.starts_with(&LANDING) { LANDING.len() } else { 0 };
    let original = [*code.get(skip)?];
    (original != BREAKPOINT).then_some(Point { skip: skip as u8, original })
}

/// The hook of a function at `address`, whose file has `code` from `start` on. None where it does something.
pub fn hook(address: u64, code: &[u8], start: u64) -> Option<Hook> {
    let at = usize::try_from(address.checked_sub(start)?).ok()?;
    let own = code.get(at..)?;
    let hook = |byte, resume| Some(Hook { address, original: [byte], resume });
    if own.starts_with(&LANDING) {
        let rest = own.get(LANDING.len()..)?;
        let does_nothing = rest.first() == Some(&RETURN) || rest.starts_with(&REP_RETURN);
        return if does_nothing { hook(LANDING[0], address.checked_add(LANDING.len() as u64)?) } else { None };
    }
    if own.starts_with(&REP_RETURN) {
        return hook(REP_RETURN[0], address.checked_add(1)?);
    }
    if own.first() != Some(&RETURN) {
        return None;
    }
    // Any other return does; it need not be one that the compiler meant.
    let other = code.iter().enumerate().position(|(place, byte)| *byte == RETURN && place != at)?;
    hook(RETURN, start.checked_add(other as u64)?)
}

/// `mov $13, %eax; syscall`: rt_sigaction(2), as the C libraries and Go have it. The breakpoint stands on the first instruction.
const SETS_ACTION: [u8; 7] = [0xb8, libc::SYS_rt_sigaction as u8, 0, 0, 0, 0x0f, 0x05];
/// What stands at its breakpoint.
pub const SETTING: [u8; WIDTH] = [SETS_ACTION[0]];
/// Bytes of its first instruction.
const LOADING: u64 = 5;

/// Where code sets actions of signals: offsets of its breakpoints.
pub fn setting_places(code: &[u8]) -> Vec<u64> {
    memmem::find_iter(code, &SETS_ACTION).map(|at| at as u64).collect()
}

/// The system call instruction behind such a breakpoint.
pub fn call_behind(place: u64) -> u64 {
    place.wrapping_add(LOADING)
}

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

/// Addresses that user space has (canonical, lower half).
pub const USER: Range<u64> = 0x1000..0x00ff_ffff_ffff_f000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_stands_behind_a_landing_place_and_never_on_another() {
        assert_eq!(point(&[0x55, 0x48]), Some(Point { skip: 0, original: [0x55] }));
        assert_eq!(point(&[0xf3, 0x0f, 0x1e, 0xfa, 0x31]), Some(Point { skip: 4, original: [0x31] }));
        assert_eq!(point(&[0xf3, 0x0f, 0x1e, 0xfa]), None);
        assert_eq!(point(&[BREAKPOINT[0], 0xc3]), None);
        assert_eq!(point(&[]), None);
    }

    #[test]
    fn where_actions_are_set_is_found() {
        let code = [&[0x90, 0xb8, 13, 0, 0, 0, 0x0f][..], &SETS_ACTION, &[0x05]].concat();
        assert_eq!(setting_places(&code), [7]);
    }

    #[test]
    fn a_hook_goes_on_at_a_return_that_is_really_there() {
        let code = [0x90, 0xc3, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3, 0xf3, 0xc3, 0x55];
        let at =
            |offset: u64| hook(0x1000 + offset, &code, 0x1000).map(|hook| (hook.original[0], hook.resume - 0x1000));
        assert_eq!(at(1), Some((0xc3, 6)));
        assert_eq!(at(2), Some((0xf3, 6)));
        assert_eq!(at(7), Some((0xf3, 8)));
        assert_eq!((at(0), at(9), at(99)), (None, None, None));
        assert_eq!(hook(0x1000, &[0xc3], 0x1000), None);
    }
}
