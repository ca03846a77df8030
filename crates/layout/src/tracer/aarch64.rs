//! Everything that is particular to aarch64: the breakpoint, where a function may have one, registers, and the calls that it makes.
//!
//! The same names as for x86-64. Instructions are four bytes at addresses that are multiples of four (Arm ARM, A64).

use super::action::Action;
use super::breakpoint;
use super::ptrace::{self, Registers};
use std::io;
use std::ops::Range;

/// Name of the machine in a trace.
pub const MACHINE: &str = "aarch64";

/// Where the breakpoint of a function stands.
pub type Point = breakpoint::Point<WIDTH>;
/// A function that does nothing, which is stopped at every time.
pub type Hook = breakpoint::Hook<WIDTH>;

/// Bytes of a breakpoint, and so of what stood in its place.
pub const WIDTH: usize = 4;

/// `brk #0`. It may stand where an indirect branch lands under BTI, too (Arm ARM, "Branch Target Identification").
pub const BREAKPOINT: [u8; WIDTH] = 0xd420_0000_u32.to_le_bytes();

/// `si_code` of the signal that a breakpoint raises (`brk_handler`, arch/arm64/kernel/debug-monitors.c).
pub const BREAKPOINT_CODE: i32 = libc::TRAP_BRKPT;

/// `bti c`.
const LANDING: [u8; WIDTH] = 0xd503_245f_u32.to_le_bytes();

/// `ret`.
const RETURN: [u8; WIDTH] = 0xd65f_03c0_u32.to_le_bytes();

/// The place for the breakpoint of a function with this code; none where it has none of its own, or one already.
pub fn point(code: &[u8]) -> Option<Point> {
    let original = *code.first_chunk()?;
    (original != BREAKPOINT).then_some(Point { skip: 0, original })
}

/// The hook of a function at `address`, whose file has `code` from `start` on. None where it does something.
pub fn hook(address: u64, code: &[u8], start: u64) -> Option<Hook> {
    let at = usize::try_from(address.checked_sub(start)?).ok()?;
    let own = instructions(code.get(at..)?);
    let hook = |original, resume| Some(Hook { address, original, resume });
    match own {
        [LANDING, RETURN, ..] => hook(LANDING, address.checked_add(WIDTH as u64)?),
        [RETURN, ..] => {
            // Any other return does.
            let place = at / WIDTH;
            let other =
                instructions(code).iter().enumerate().position(|(other, one)| *one == RETURN && other != place)?;
            hook(RETURN, start.checked_add((other * WIDTH) as u64)?)
        }
        _ => None,
    }
}

fn instructions(code: &[u8]) -> &[[u8; WIDTH]] {
    code.as_chunks().0
}

/// `mov x8, #134; svc #0`: rt_sigaction(2), as the C libraries have it. The breakpoint stands on the first instruction.
const SETS_ACTION: [[u8; WIDTH]; 2] = [0xd280_10c8_u32.to_le_bytes(), 0xd400_0001_u32.to_le_bytes()];
/// What stands at its breakpoint.
pub const SETTING: [u8; WIDTH] = SETS_ACTION[0];

/// Where code sets actions of signals: offsets of its breakpoints.
pub fn setting_places(code: &[u8]) -> Vec<u64> {
    let pairs = instructions(code).windows(2).enumerate();
    pairs.filter(|(_, pair)| **pair == SETS_ACTION).map(|(at, _)| (at * WIDTH) as u64).collect()
}

/// The system call instruction behind such a breakpoint.
pub fn call_behind(place: u64) -> u64 {
    place.wrapping_add(WIDTH as u64)
}

/// Address of the breakpoint at which a thread has stopped.
pub fn stopped_at(tid: i32) -> io::Result<u64> {
    ptrace::registers(tid).map(|registers| registers.pc)
}

/// Has a stopped thread go on at an address.
pub fn go_on_at(tid: i32, address: u64) -> io::Result<()> {
    let mut registers = ptrace::registers(tid)?;
    // It stands there already, unless it goes on elsewhere.
    if registers.pc == address {
        return Ok(());
    }
    registers.pc = address;
    ptrace::set_registers(tid, &registers)
}

/// Number of the register that holds the number of a system call, and of that which tells a tracer at which end of one a thread has
/// stopped: 1 at its end (`report_syscall`, arch/arm64/kernel/ptrace.c).
const CALL: usize = 8;
const END_OF_CALL: usize = 7;

/// Where code of a file was mapped, if that is what a thread has just done at the end of a system call.
pub fn mapped_code(registers: &Registers) -> Option<u64> {
    let returned = registers.regs[0].cast_signed();
    let has_failed = (-4095..0).contains(&returned);
    let is_mmap = registers.regs[CALL] == libc::SYS_mmap.cast_unsigned() && registers.regs[END_OF_CALL] == 1;
    let executable = registers.regs[2] & libc::PROT_EXEC as u64 != 0;
    let of_file = registers.regs[3] & libc::MAP_ANONYMOUS as u64 == 0;
    (is_mmap && !has_failed && executable && of_file).then_some(registers.regs[0])
}

/// Has a stopped thread go on behind such a breakpoint, as if its first instruction had run.
pub fn go_on_to_set(tid: i32, place: u64) -> io::Result<()> {
    let mut registers = ptrace::registers(tid)?;
    registers.regs[CALL] = libc::SYS_rt_sigaction.cast_unsigned();
    registers.pc = call_behind(place);
    ptrace::set_registers(tid, &registers)
}

/// Where the new action stands that a thread is about to set for a signal; none where it sets none.
pub fn sets_action(registers: &Registers, signal: i32) -> Option<u64> {
    let is_meant = registers.regs[0] as i32 == signal && registers.regs[3] == size_of::<u64>() as u64;
    (is_meant && registers.regs[1] != 0).then_some(registers.regs[1])
}

/// Registers with which a thread sets the action of a signal, and where that action has to stand: below its stack, below which nothing
/// lives (AAPCS64).
pub fn call_to_set_action(before: &Registers, call: u64, signal: i32) -> (Registers, u64) {
    let at = before.sp.wrapping_sub(Action::BYTES as u64) & !15;
    let mut during = *before;
    during.pc = call;
    during.regs[CALL] = libc::SYS_rt_sigaction.cast_unsigned();
    during.regs[0] = signal as u64;
    during.regs[1] = at;
    during.regs[2] = 0;
    during.regs[3] = size_of::<u64>() as u64;
    (during, at)
}

/// Addresses that user space has: of 52 bits at most.
pub const USER: Range<u64> = 0x1000..0x000f_ffff_ffff_f000;

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: [u8; WIDTH] = 0xa9bf_7bfd_u32.to_le_bytes();

    #[test]
    fn a_breakpoint_stands_on_the_first_instruction_and_never_on_another() {
        assert_eq!(point(&OTHER), Some(Point { skip: 0, original: OTHER }));
        assert_eq!((point(&OTHER[..3]), point(&BREAKPOINT)), (None, None));
    }

    #[test]
    fn where_actions_are_set_is_found() {
        let code = [OTHER, SETS_ACTION[0], OTHER, SETS_ACTION[0], SETS_ACTION[1]].concat();
        assert_eq!(setting_places(&code), [12]);
    }

    #[test]
    fn a_hook_goes_on_at_a_return_that_is_really_there() {
        let code = [OTHER, RETURN, LANDING, RETURN].concat();
        let at = |offset: u64| hook(0x1000 + offset, &code, 0x1000).map(|hook| (hook.original, hook.resume - 0x1000));
        assert_eq!((at(4), at(8)), (Some((RETURN, 12)), Some((LANDING, 12))));
        assert_eq!((at(0), at(16), hook(0x1000, &RETURN, 0x1000)), (None, None, None));
    }
}
