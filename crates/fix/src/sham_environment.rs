//! The control beside fixes that change the environment: as many variables of as many bytes, and nothing that has an effect.
//!
//! Owns a value of `GLIBC_TUNABLES` of a given length that sets a setting to what it is anyway. The size of the environment alone
//! moves a program's stack, and can make it some percent faster or slower.

use crate::allocator_tunables::{VARIABLE, with};
use std::ffi::{OsStr, OsString};

/// Settings whose default is 0, and what 0 means: no filling of freed memory; no limit (manual of glibc, Memory Allocation
/// Tunables).
const HARMLESS: [&str; 2] = ["glibc.malloc.perturb", "glibc.malloc.tcache_unsorted_limit"];

/// The variable of the sham beside treated launches that have these variables instead of the untreated one's: as long as the longest value
/// of it among them. `None` where the untreated launch sets every setting of no effect.
pub fn beside<'a>(
    untreated: &[(OsString, OsString)],
    treated: impl IntoIterator<Item = &'a [(OsString, OsString)]>,
) -> Option<(OsString, OsString)> {
    let longest = treated.into_iter().filter_map(value).map(OsStr::len).max().unwrap_or(0);
    variable(value(untreated), longest)
}

fn value(variables: &[(OsString, OsString)]) -> Option<&OsStr> {
    variables.iter().rfind(|(name, _)| name == VARIABLE).map(|(_, value)| value.as_os_str())
}

/// The variable with what the user has in it and a setting of no effect, as long as `length` bytes, or as short as it can be.
/// `None` where the user sets all of them: then there is nothing of no effect.
fn variable(user: Option<&OsStr>, length: usize) -> Option<(OsString, OsString)> {
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

    fn of_length(user: Option<&str>, length: usize) -> Option<String> {
        let (name, value) = variable(user.map(OsStr::new), length)?;
        assert_eq!(name, VARIABLE);
        Some(value.into_string().unwrap())
    }

    #[test]
    fn it_is_as_long_as_what_it_stands_beside_and_keeps_what_the_user_has() {
        let treated = "glibc.malloc.mmap_threshold=2097152:glibc.malloc.trim_threshold=8388608";
        let sham = of_length(None, treated.len()).unwrap();
        assert_eq!(sham.len(), treated.len());
        let (name, zeros) = sham.split_once('=').unwrap();
        assert_eq!((name, zeros.trim_matches('0')), ("glibc.malloc.perturb", ""));
        assert_eq!(of_length(None, 0).unwrap(), "glibc.malloc.perturb=0");
        let user = "glibc.malloc.arena_max=1";
        let both = of_length(Some(user), 80).unwrap();
        assert_eq!((both.len(), both.starts_with(user)), (80, true));
    }

    #[test]
    fn what_the_user_sets_is_not_touched() {
        let one = of_length(Some("glibc.malloc.perturb=1"), 70).unwrap();
        assert!(one.starts_with("glibc.malloc.perturb=1:glibc.malloc.tcache_unsorted_limit=00"), "{one}");
        assert_eq!(of_length(Some("glibc.malloc.perturb=1:glibc.malloc.tcache_unsorted_limit=4"), 70), None);
    }

    #[test]
    fn its_length_is_that_of_the_longest_value_among_the_treated_launches() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let untreated = [pair(VARIABLE, "old"), pair(VARIABLE, "glibc.malloc.arena_max=1")];
        let value = format!("glibc.malloc.mmap_threshold={}", "4".repeat(40));
        let treated = [[pair(VARIABLE, "x")], [pair(VARIABLE, &value)], [pair("LD_PRELOAD", &value.repeat(2))]];
        let made = beside(&untreated, treated.iter().map(|one| &one[..])).unwrap();
        let text = made.1.into_string().unwrap();
        assert!(
            text.len() == value.len() && text.starts_with("glibc.malloc.arena_max=1:glibc.malloc.perturb=0"),
            "{text}"
        );
        assert_eq!(beside(&[], std::iter::empty()), Some(pair(VARIABLE, "glibc.malloc.perturb=0")));
    }
}
