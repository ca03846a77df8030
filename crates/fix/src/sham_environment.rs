//! The control beside fixes that change the environment: as many variables of as many bytes, and nothing that has an effect.
//!
//! Owns a value of `GLIBC_TUNABLES` of a given length that sets a setting to what it is anyway. The size of the environment alone
//! moves a program's stack, and can make it some percent faster or slower.

use crate::allocator_tunables::{VARIABLE, with};
use std::ffi::{OsStr, OsString};

/// Settings whose default is 0, and what 0 means: no filling of freed memory; no limit (manual of glibc, Memory Allocation
/// Tunables).
const HARMLESS: [&str; 2] = ["glibc.malloc.perturb", "glibc.malloc.tcache_unsorted_limit"];

/// The variable with what the user has in it and a setting of no effect, as long as `length` bytes, or as short as it can be.
/// `None` where the user sets all of them: then there is nothing of no effect.
pub fn variable(user: Option<&OsStr>, length: usize) -> Option<(OsString, OsString)> {
    let text = user.map(OsStr::to_string_lossy).unwrap_or_default();
    let is_free = |name: &&&str| !text.split(':').any(|part| part.split('=').next() == Some(**name));
    let name = *HARMLESS.iter().find(is_free)?;
    let shortest = with(user, [(name, "0")].into_iter());
    // Zeros in front: a number in base 8 that is 0.
    let zeros = "0".repeat(1 + length.saturating_sub(shortest.len()));
    Some((VARIABLE.into(), with(user, [(name, zeros)].into_iter())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(user: Option<&str>, length: usize) -> Option<String> {
        let (name, value) = variable(user.map(OsStr::new), length)?;
        assert_eq!(name, VARIABLE);
        Some(value.into_string().unwrap())
    }

    #[test]
    fn it_is_as_long_as_what_it_stands_beside_and_keeps_what_the_user_has() {
        let treated = "glibc.malloc.mmap_threshold=2097152:glibc.malloc.trim_threshold=8388608";
        let sham = value(None, treated.len()).unwrap();
        assert_eq!(sham.len(), treated.len());
        let (name, zeros) = sham.split_once('=').unwrap();
        assert_eq!((name, zeros.trim_matches('0')), ("glibc.malloc.perturb", ""));
        assert_eq!(value(None, 0).unwrap(), "glibc.malloc.perturb=0");
        let user = "glibc.malloc.arena_max=1";
        let both = value(Some(user), 80).unwrap();
        assert_eq!((both.len(), both.starts_with(user)), (80, true));
    }

    #[test]
    fn what_the_user_sets_is_not_touched() {
        let one = value(Some("glibc.malloc.perturb=1"), 70).unwrap();
        assert!(one.starts_with("glibc.malloc.perturb=1:glibc.malloc.tcache_unsorted_limit=00"), "{one}");
        assert_eq!(value(Some("glibc.malloc.perturb=1:glibc.malloc.tcache_unsorted_limit=4"), 70), None);
    }
}
