//! A fast hash for keys made of a few integers (threads, files, pages).
//!
//! The standard hash resists chosen keys at a cost that dominates the analysis of a million rows. These keys are numbers
//! that the kernel gave out; whoever forges a recording can at worst make its own analysis slow.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Map with integer keys.
pub(crate) type IntegerMap<K, V> = HashMap<K, V, BuildHasherDefault<IntegerHasher>>;
/// Set of integers.
pub(crate) type IntegerSet<K> = HashSet<K, BuildHasherDefault<IntegerHasher>>;

/// Multiply and rotate a word at a time, as FxHash does (Firefox, rustc); the multiplier is 2^64 divided by the golden
/// ratio, made odd.
#[derive(Clone, Copy, Default)]
pub(crate) struct IntegerHasher(u64);

impl Hasher for IntegerHasher {
    fn finish(&self) -> u64 {
        // The table takes its slot from the low bits, where a multiplication leaves the least.
        self.0 ^ (self.0 >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_spread_over_the_low_bits() {
        let slot = |value: u64| {
            let mut hasher = IntegerHasher::default();
            hasher.write_u64(value);
            hasher.finish() & 0xfff
        };
        let slots: HashSet<u64> = (0..4096).map(slot).collect();
        // 4096 throws into 4096 slots at random hit 63 % of them.
        assert!(slots.len() > 2400, "only {} of 4096 slots are used", slots.len());
    }
}
