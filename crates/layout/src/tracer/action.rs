//! What a program does with a signal, as the kernel has it.
//!
//! Owns its form, which x86-64 and aarch64 share.

/// An action of a signal as the kernel has it (`struct sigaction`, include/linux/signal_types.h, with a restorer): handler, flags, restorer, mask.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_keeps_its_bytes_and_without_a_handler_nothing_else_counts() {
        let bytes: [u8; 32] = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(Action::of(bytes).bytes(), bytes);
        let mut ignored = bytes;
        ignored[..8].copy_from_slice(&1u64.to_le_bytes());
        assert_eq!(Action::of(ignored), Action::IGNORED);
    }
}
