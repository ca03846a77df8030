//! The end of a function that installs the frame of an exception handler (`__builtin_eh_return`, in libgcc's `_Unwind_...`).
//!
//! Such a function first has the handler's registers, the return address among them, copied over those that it saved itself, and
//! then takes registers and stack pointer from there. Its description speaks as if all that was left of its own frame were
//! untouched up to the moment in which the frame is given up. What happens before is described by the calls, after which nothing is
//! called any more: the second to last copies (`uw_install_context_1`), the last is for debuggers (`_Unwind_DebugHook`). While it
//! is copied, the return address comes last, and its original is still there: whoever walks can tell by it whether it was
//! copied. To stop too early costs a stack, and to stop too late gives a wrong one; so without two calls the whole range is given up.
//!
//! Owns: finding these calls in machine code. Leaves telling such functions by their descriptions to [`super::program`].

use std::ops::Range;

/// `call` to an address that is given as a distance: its first byte, and its length.
const CALL: u8 = 0xe8;
const CALL_BYTES: usize = 5;

/// Looks through the instructions before the end of a frame. Gives from where on the stack is not to be followed, and before it the
/// bytes of the call that copies, without its first: until that one, all is as described. Both in bytes from the first instruction.
/// `at` is where the code stands in the file, `executable` what holds it there: a call leads to somewhere within.
pub(super) fn hand_over(code: &[u8], at: u64, executable: &Range<u64>) -> Range<u64> {
    let leads_within = |call: &usize| {
        let end = call + CALL_BYTES;
        let distance = code.get(call + 1..end).and_then(|bytes| bytes.try_into().ok()).map(i32::from_le_bytes);
        let target = distance.and_then(|distance| (at + end as u64).checked_add_signed(i64::from(distance)));
        code[*call] == CALL && target.is_some_and(|target| executable.contains(&target))
    };
    (0..code.len()).rev().filter(leads_within).nth(1).map_or(0..0, |call| call as u64 + 1..(call + CALL_BYTES) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_to_last_call_into_the_file_tells_where_it_begins() {
        // Two calls, and a displacement that looks like a third, which would lead out of the file.
        let mut code = vec![0x90; 40];
        code[3..8].copy_from_slice(&[CALL, 0x10, 0, 0, 0]);
        code[20..25].copy_from_slice(&[CALL, 0xf0, 0xff, 0xff, 0xff]);
        code[30..35].copy_from_slice(&[CALL, 0x4c, 0x8b, 0x75, 0xf0]);
        let found = |code: &[u8]| hand_over(code, 0x1000, &(0x800..0x2000));
        assert_eq!(found(&code), 4..8);
        assert_eq!(found(&code[10..]), 0..0);
        assert_eq!(found(&code[..22]), 0..0);
        code[12..17].copy_from_slice(&[CALL, 0, 0, 0, 0]);
        assert_eq!(found(&code), 13..17);
    }
}
