//! What a fix is before it is made for a program: its name and what people should know of it.
//!
//! Each fix declares itself in its own file; [`crate::ALL`] lists them. `slowpath explain` and the reference page come from here, and so does
//! whether two names mean the same fix: a diagnosis, and the record of what was applied, may be of an earlier version.

use crate::proposal::{Case, Proposal};
use std::borrow::Cow;

/// A fix, declared.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name in JSON (`preload_plan`).
    pub name: &'static str,
    /// Names that it had in earlier versions, the latest first.
    pub former: &'static [&'static str],
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it changes.
    pub what: &'static str,
    /// Why that helps.
    pub why: &'static str,
    /// What it costs as long as it is applied.
    pub price: &'static str,
    /// How it is applied by hand, and undone.
    pub by_hand: &'static str,
    /// Whether slowpath tries it by itself, and how.
    pub trial: &'static str,
    /// What makes it for findings that name it; `None` for one that needs a lab, which whoever has one makes.
    pub propose: Option<fn(&Case<'_>) -> Vec<Proposal>>,
}

/// Whether two plans have the same name, be it that of an earlier version.
pub fn is_same_name(one: &str, other: &str) -> bool {
    current_name(one) == current_name(other)
}

/// What a fix, or a plan of it, is called in this version. Where a fix has several plans their numbers follow its name (`reuse_buffer 2`).
fn current_name(name: &str) -> Cow<'_, str> {
    let fix = name.split(' ').next().unwrap_or(name);
    match crate::ALL.iter().find(|declaration| declaration.former.contains(&fix)) {
        Some(declaration) => Cow::Owned(format!("{}{}", declaration.name, &name[fix.len()..])),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_plan_is_known_by_its_name_and_by_that_of_earlier_versions() {
        for (name, former) in [
            ("avoid_copy", "look_in_place"),
            ("right_size_buffer", "size_to_use"),
            ("reuse_buffer", "keep_buffer"),
            ("reuse_buffer 2", "keep_buffer 2"),
            ("replace_allocator", "another_allocator"),
        ] {
            assert!(
                is_same_name(name, former) && is_same_name(former, name) && is_same_name(former, former),
                "{former}"
            );
        }
        for (one, other) in [("reuse_buffer", "keep_buffer 2"), ("reuse_buffer", "look_in_place"), ("x", "y")] {
            assert!(!is_same_name(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_former_name_is_that_of_one_fix_and_of_none_today() {
        let today: BTreeSet<&str> = crate::ALL.iter().map(|fix| fix.name).collect();
        let former: Vec<&str> = crate::ALL.iter().flat_map(|fix| fix.former).copied().collect();
        assert_eq!(former.iter().collect::<BTreeSet<_>>().len(), former.len());
        assert!(former.iter().all(|name| !today.contains(name)), "{former:?}");
    }
}
