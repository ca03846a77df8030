//! Compiler filters (libartbase/base/compiler_filter.h).

/// Whether code is compiled ahead of time with this filter, at least in part: `space*`, `speed*`, `everything*`, `time`, `balanced`.
pub fn is_compiled(filter: &str) -> bool {
    let stem = filter.strip_suffix("-profile").unwrap_or(filter);
    matches!(stem, "space" | "speed" | "everything" | "time" | "balanced")
}

/// Whether what is compiled depends on a profile, so that the artifacts say what somebody used and are kept from others
/// (`CompilerFilter::DependsOnProfile`).
pub fn is_profile_guided(filter: &str) -> bool {
    filter.ends_with("-profile")
}

/// Whether classes are verified with this filter: all but those that leave it to the start of each process.
pub(super) fn is_verified(filter: &str) -> bool {
    is_compiled(filter)
        || matches!(filter, "verify" | "quicken" | "interpret-only" | "verify-profile" | "assume-verified")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_told_apart() {
        for (filter, compiled, guided, verified) in [
            ("speed", true, false, true),
            ("speed-profile", true, true, true),
            ("everything-profile", true, true, true),
            ("verify", false, false, true),
            ("quicken", false, false, true),
            ("extract", false, false, false),
            ("run-from-apk", false, false, false),
        ] {
            assert_eq!(
                (is_compiled(filter), is_profile_guided(filter), is_verified(filter)),
                (compiled, guided, verified),
                "{filter}"
            );
        }
    }
}
