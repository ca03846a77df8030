//! The parsers of this crate as functions of bytes, for the fuzzers.

use crate::policy::parse;
use crate::tries::Tries;

/// A policy. Returns how many artifacts it has.
pub fn policy(text: &str) -> usize {
    match parse(text) {
        Ok(policy) => {
            let paths = policy.artifacts.iter().flat_map(|artifact| &artifact.paths);
            assert!(paths.into_iter().all(|path| path.is_absolute()), "{policy:?}");
            let repairs = policy.artifacts.iter().filter_map(|artifact| artifact.repair.as_ref());
            assert!(repairs.into_iter().all(|repair| repair.command[0].starts_with('/')), "{policy:?}");
            policy.artifacts.len()
        }
        Err(problem) => {
            drop(problem.to_string());
            0
        }
    }
}

/// A record of what was tried, which is the same after a way through its text.
pub fn tries(bytes: &[u8]) {
    if let Ok(tries) = Tries::parse(bytes) {
        assert_eq!(Tries::parse(&tries.text()).as_ref(), Ok(&tries));
        let mut longer = tries;
        longer.begin("1", "a", String::new());
        assert!(longer.of("1", "a").is_some_and(|tried| tried.ended.is_none()));
    }
}
