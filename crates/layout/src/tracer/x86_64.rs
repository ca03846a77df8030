//! Everything that is particular to x86-64: the breakpoint, where a function may have one, registers, and the call that maps code.
//!
//! Nothing beside this file and its registers knows an instruction or a register.

#[cfg(not(target_arch = "x86_64"))]
#[path = "no_registers.rs"]
mod registers;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64_registers.rs"]
mod registers;

pub use registers::{call_to_set_action, go_on_at, go_on_to_set, mapped_code, sets_action, stopped_at};

use memchr::memmem;
use std::ops::Range;

/// Name of the machine in a trace.
pub const MACHINE: &str = "x86_64";

/// `int3`, one byte: whole or not there for every other thread (Intel SDM 3, "Breakpoint Exception").
pub const BREAKPOINT: u8 = 0xcc;

/// `endbr64`, where an indirect branch may land under CET. A breakpoint stands behind it: on the landing place itself it would be a
/// violation, and an unwinder or a patcher may look for it.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// `ret`.
const RETURN: u8 = 0xc3;

/// `rep ret`, as old compilers make it.
const REP_RETURN: [u8; 2] = [0xf3, 0xc3];

/// Where the breakpoint of a function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Bytes from its first instruction.
    pub skip: u8,
    /// What stands there.
    pub byte: u8,
}

/// The place for the breakpoint of a function with this code; none where it has none of its own, or one already.
pub fn point(code: &[u8]) -> Option<Point> {
    let skip = if code.starts_with(&LANDING) { LANDING.len() } else { 0 };
    let byte = *code.get(skip)?;
    (byte != BREAKPOINT).then_some(Point { skip: skip as u8, byte })
}

/// A function that does nothing, which is stopped at every time: the breakpoint's place, and where it goes on instead of the
/// instruction that the breakpoint replaced. That is never emulated: a return that nobody made breaks a shadow stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Address of the breakpoint, as the file states it.
    pub address: u64,
    /// What stands there.
    pub byte: u8,
    /// Address at which it goes on.
    pub resume: u64,
}

/// The hook of a function at `address`, whose file has `code` from `start` on. None where it does something.
pub fn hook(address: u64, code: &[u8], start: u64) -> Option<Hook> {
    let at = usize::try_from(address.checked_sub(start)?).ok()?;
    let own = code.get(at..)?;
    let hook = |byte, resume| Some(Hook { address, byte, resume });
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
pub const SETTING_BYTE: u8 = SETS_ACTION[0];
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

/// An action of a signal as the kernel has it (`struct sigaction`, arch/x86/include/uapi/asm/signal.h): handler, flags, restorer, mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action([u64; 4]);

impl Action {
    /// Its bytes.
    pub const BYTES: usize = 32;
    /// `SIG_DFL`.
    pub const DEFAULT: Self = Self([0; 4]);
    /// `SIG_IGN`.
    pub const IGNORED: Self = Self([1, 0, 0, 0]);

    /// From memory. Of an action without a handler nothing else counts.
    pub fn of(bytes: [u8; Self::BYTES]) -> Self {
        let words = bytes.as_chunks::<8>().0;
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        match word(0) {
            0 => Self::DEFAULT,
            1 => Self::IGNORED,
            handler => Self([handler, word(1), word(2), word(3)]),
        }
    }

    /// For memory.
    pub fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *to = word.to_le_bytes();
        }
        bytes
    }

    /// Whether the kernel takes the handler away when it is called (`SA_RESETHAND`).
    pub fn is_for_one_time(self) -> bool {
        self.0[1] & libc::SA_RESETHAND as u32 as u64 != 0
    }
}

/// Addresses that user space has (canonical, lower half).
pub const USER: Range<u64> = 0x1000..0x00ff_ffff_ffff_f000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_stands_behind_a_landing_place_and_never_on_another() {
        assert_eq!(point(&[0x55, 0x48]), Some(Point { skip: 0, byte: 0x55 }));
        assert_eq!(point(&[0xf3, 0x0f, 0x1e, 0xfa, 0x31]), Some(Point { skip: 4, byte: 0x31 }));
        assert_eq!(point(&[0xf3, 0x0f, 0x1e, 0xfa]), None);
        assert_eq!(point(&[BREAKPOINT, 0xc3]), None);
        assert_eq!(point(&[]), None);
    }

    #[test]
    fn where_actions_are_set_is_found_and_an_action_keeps_its_bytes() {
        let code = [&[0x90, 0xb8, 13, 0, 0, 0, 0x0f][..], &SETS_ACTION, &[0x05]].concat();
        assert_eq!(setting_places(&code), [7]);
        let bytes: [u8; 32] = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(Action::of(bytes).bytes(), bytes);
        let mut ignored = bytes;
        ignored[..8].copy_from_slice(&1u64.to_le_bytes());
        assert_eq!(Action::of(ignored), Action::IGNORED);
    }

    #[test]
    fn a_hook_goes_on_at_a_return_that_is_really_there() {
        let code = [0x90, 0xc3, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3, 0xf3, 0xc3, 0x55];
        let at = |offset: u64| hook(0x1000 + offset, &code, 0x1000).map(|hook| (hook.byte, hook.resume - 0x1000));
        assert_eq!(at(1), Some((0xc3, 6)));
        assert_eq!(at(2), Some((0xf3, 6)));
        assert_eq!(at(7), Some((0xf3, 8)));
        assert_eq!((at(0), at(9), at(99)), (None, None, None));
        assert_eq!(hook(0x1000, &[0xc3], 0x1000), None);
    }
}
