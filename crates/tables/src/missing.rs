//! What results can say to be unavailable, by name, each declared once ([`declared`]).
//!
//! Owns the names that stand in `unavailable[].what` and what they mean; whoever cannot observe something says why, and
//! what would change that.

pub mod declared;

use crate::name_pattern;
use crate::quantity::Unavailable;
use std::fmt::Display;

/// Something that can be unavailable.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name as it is printed. `<word>` stands for what differs from case to case: `probe <name>`.
    pub name: &'static str,
    /// Names of earlier versions, which their recordings still have.
    pub former: &'static [&'static str],
    /// What it is.
    pub what: &'static str,
    /// Why it may be missing.
    pub why: &'static str,
    /// What helps.
    pub helps: &'static str,
}

impl Missing {
    /// It is unavailable. For names without a `<word>`.
    pub fn because(&self, reason: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
        self.of(&[], reason, remedy)
    }

    /// This case of it is unavailable: `values` stand for the words of the name, in their order.
    pub fn of(&self, values: &[&dyn Display], reason: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
        let what = name_pattern::filled(self.name, values);
        Unavailable { what, reason: reason.into(), remedy: remedy.into() }
    }
}

/// The declaration of what is printed as `what`: the one of several that leaves least open.
pub fn named(what: &str) -> Option<&'static Missing> {
    let fitting = declared::ALL.iter().copied().filter(|one| name_pattern::fits(one.name, what));
    fitting.max_by_key(|one| name_pattern::literal(one.name))
}

/// The declaration of what earlier versions printed as `what`, and its name then.
pub fn formerly_named(what: &str) -> Option<(&'static Missing, &'static str)> {
    let former = declared::ALL.iter().flat_map(|one| one.former.iter().map(move |name| (*one, *name)));
    former.filter(|(_, name)| name_pattern::fits(name, what)).max_by_key(|(_, name)| name_pattern::literal(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_each_has_its_text() {
        let names: BTreeSet<_> = declared::ALL.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), declared::ALL.len());
        for one in declared::ALL {
            assert!(!one.what.is_empty() && !one.why.is_empty() && !one.helps.is_empty(), "{}", one.name);
        }
    }

    #[test]
    fn what_is_printed_leads_back_to_its_declaration() {
        for one in declared::ALL {
            let words = one.name.matches('<').count();
            let values: Vec<&dyn Display> = vec![&"x 7"; words];
            let what = one.of(&values, "", "").what;
            assert!(!what.contains('<'), "{what}");
            assert_eq!(named(&what).map(|found| found.name), Some(one.name), "{what}");
        }
        assert_eq!(named("probe first_wait").map(|one| one.name), Some("probe <name>"));
        assert_eq!(named("child launches: probe fault").map(|one| one.name), Some("child launches: <what>"));
        assert_eq!(named("probe "), None);
        assert_eq!(named("nothing of that name"), None);
    }

    #[test]
    fn a_name_of_an_earlier_version_leads_to_what_is_declared_now() {
        let now = |what: &str| formerly_named(what).map(|(found, _)| found.name);
        assert_eq!(now("first page faults on processor 3"), Some("first page faults on CPU <cpu>"));
        assert_eq!(now("first page faults on CPU 3"), None);
        for (one, former) in declared::ALL.iter().flat_map(|one| one.former.iter().map(move |name| (one, name))) {
            assert_eq!(named(former), None, "{}: {former} is declared too", one.name);
        }
    }
}
