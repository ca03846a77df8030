//! Recognising the code that a signal handler returns to, where nothing describes it.
//!
//! glibc describes its `__restore_rt`; musl and the Go runtime do not, but use the same two instructions, because debuggers
//! look for them.

use std::ops::Range;

/// `mov $15, %rax; syscall`: `rt_sigreturn` (number 15 in the kernel's `syscall_64.tbl`).
const RETURN_FROM_SIGNAL: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Bytes that are looked through in one file: reading them may bring pages of code into memory that nobody uses, and some large
/// programs (Chromium) have no descriptions at all. musl is smaller, and the Go runtime stands at the start of its programs.
pub(super) const SCANNED: u64 = 1 << 20;

/// Where in `code` the trampolines stand, one byte before each included: a caller is looked up by the byte before its return
/// address, and the trampoline's first instruction is a return address that no call left.
pub(super) fn trampolines(code: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let starts = code.windows(RETURN_FROM_SIGNAL.len()).enumerate();
    let starts = starts.filter(|(_, bytes)| *bytes == RETURN_FROM_SIGNAL).map(|(at, _)| at);
    starts.map(|at| at.saturating_sub(1)..at + RETURN_FROM_SIGNAL.len())
}

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
        assert_eq!(trampolines(&code).map(|at| (at.start, at.end)).collect::<Vec<_>>(), [(1, 11)]);
        // Another system call.
        code[5] = 0x0e;
        assert_eq!(trampolines(&code).count(), 0);
    }
}
