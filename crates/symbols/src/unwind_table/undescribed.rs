//! Code that nothing describes and that is known all the same: what a signal handler returns to, the start-up functions, the
//! entry point.
//!
//! glibc describes its `__restore_rt`; musl and the Go runtime do not, but use the same two instructions, because debuggers
//! look for them.

use super::{CfaRule, FramePointerRule, Row};
use std::ops::Range;

/// `mov $15, %rax; syscall`: `rt_sigreturn` (number 15 in the kernel's `syscall_64.tbl`).
const RETURN_FROM_SIGNAL: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Bytes that are looked through in one file: reading them may bring pages of code into memory that nobody uses, and some large
/// programs (Chromium) have no descriptions at all. musl is smaller, and the Go runtime stands at the start of its programs.
pub(super) const SCANNED: u64 = 1 << 20;

/// What the C start-up files put into `.init` and `.fini` (glibc's `crti` and `crtn`): room for a word, at most one call, and back.
const MAKE_ROOM: [u8; 4] = [0x48, 0x83, 0xec, 0x08];
const GIVE_BACK_AND_RETURN: [u8; 5] = [0x48, 0x83, 0xc4, 0x08, 0xc3];
/// `mov __gmon_start__, %rax` without its address, and after that: `test %rax, %rax; je .+2; call *%rax`.
const LOAD_HOOK: [u8; 3] = [0x48, 0x8b, 0x05];
const CALL_HOOK: [u8; 7] = [0x48, 0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0];

/// An entry of the linkage table of statically linked programs, which linkers do not describe: `jmp *place(%rip)` without the place,
/// and the two bytes that fill it up. Nothing is on the stack but the return address.
const JUMP: [u8; 2] = [0xff, 0x25];
const FILL: [u8; 2] = [0x66, 0x90];
const ENTRY: usize = 8;

/// `mov x8, #139; svc #0` of AArch64: `rt_sigreturn` (include/uapi/asm-generic/unistd.h). Its kernels' vdso may have no descriptions.
const RETURN_FROM_SIGNAL_AARCH64: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4];
/// Bytes of an instruction there.
const INSTRUCTION: usize = 4;

/// The same of AArch64.
pub(super) fn known_aarch64(code: &[u8]) -> Vec<(Range<usize>, Row)> {
    let places = (0..code.len()).step_by(INSTRUCTION);
    let found = places.filter(|at| code[*at..].starts_with(&RETURN_FROM_SIGNAL_AARCH64));
    // With the instruction before, as there.
    found.map(|at| (at.saturating_sub(INSTRUCTION)..at + RETURN_FROM_SIGNAL_AARCH64.len(), Row::SIGNAL_FRAME)).collect()
}

/// Code in a gap between descriptions that is known by its bytes: where in `code` it stands, and its rule.
pub(super) fn known_code(code: &[u8]) -> Vec<(Range<usize>, Row)> {
    let mut found = Vec::new();
    for at in 0..code.len() {
        let here = &code[at..];
        if here.starts_with(&RETURN_FROM_SIGNAL) {
            // With the byte before: a caller is looked up there, and the first instruction here is a return address that no call
            // left.
            found.push((at.saturating_sub(1)..at + RETURN_FROM_SIGNAL.len(), Row::SIGNAL_FRAME));
        } else if here.starts_with(&JUMP) && here.get(6..ENTRY) == Some(&FILL) {
            found.push((at..at + ENTRY, Row::new(CfaRule::StackPointer, 8, FramePointerRule::Same, 0)));
        } else if let Some(back) = hook(here) {
            let pushed = |bytes| Row::new(CfaRule::StackPointer, bytes, FramePointerRule::Same, 0);
            let (room, back) = (at + MAKE_ROOM.len(), at + back);
            found.extend([(at..room, pushed(8)), (room..back, pushed(16)), (back..back + 1, pushed(8))]);
        }
    }
    found
}

/// Where the return stands in a function of `.init` or `.fini` that `code` begins with.
fn hook(code: &[u8]) -> Option<usize> {
    let rest = code.strip_prefix(&MAKE_ROOM)?;
    let called =
        rest.strip_prefix(&LOAD_HOOK).and_then(|rest| rest.get(4..)).and_then(|rest| rest.strip_prefix(&CALL_HOOK));
    let rest = called.unwrap_or(rest).strip_prefix(&GIVE_BACK_AND_RETURN)?;
    Some(code.len() - rest.len() - 1)
}

/// Bytes behind the entry point that still belong to the code that nobody called: the dynamic loader's own entry is the longest
/// known, 61 bytes.
pub(super) const ENTRY_CODE: u64 = 64;

/// The shortest gap worth a look: compilers fill up to 15 bytes between functions.
pub(super) const SHORTEST_GAP: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trampoline_is_found_with_the_byte_before_it() {
        let mut code = vec![0xc3, 0x90];
        code.extend(RETURN_FROM_SIGNAL);
        code.extend([0x0f, 0x05, 0x48]);
        assert_eq!(known_code(&code), [(1..11, Row::SIGNAL_FRAME)]);
        // Another system call.
        code[5] = 0x0e;
        assert_eq!(known_code(&code), []);
    }

    #[test]
    fn a_trampoline_of_aarch64_is_found_with_the_instruction_before_it() {
        let code = [&[0x1f, 0x20, 0x03, 0xd5][..], &RETURN_FROM_SIGNAL_AARCH64, &[0; 4]].concat();
        assert_eq!(known_aarch64(&code), [(0..12, Row::SIGNAL_FRAME)]);
        assert_eq!(known_aarch64(&code[1..]), []);
    }

    #[test]
    fn entries_of_a_linkage_table_without_a_description_have_the_return_address_only() {
        let code = [0xff, 0x25, 0xff, 0x25, 3, 4, 0x66, 0x90, 0xff, 0x25, 5, 6, 7, 8, 0x66, 0x90, 0xff, 0x25, 1];
        let row = Row::new(CfaRule::StackPointer, 8, FramePointerRule::Same, 0);
        assert_eq!(known_code(&code), [(0..8, row), (8..16, row)]);
    }

    #[test]
    fn the_start_up_functions_have_a_word_between_make_room_and_return() {
        let init = [&MAKE_ROOM[..], &LOAD_HOOK, &[1, 2, 3, 4], &CALL_HOOK, &GIVE_BACK_AND_RETURN].concat();
        let row = |bytes| Row::new(CfaRule::StackPointer, bytes, FramePointerRule::Same, 0);
        assert_eq!(known_code(&init), [(0..4, row(8)), (4..22, row(16)), (22..23, row(8))]);
        let fini = [&MAKE_ROOM[..], &GIVE_BACK_AND_RETURN].concat();
        assert_eq!(known_code(&fini), [(0..4, row(8)), (4..8, row(16)), (8..9, row(8))]);
    }
}
