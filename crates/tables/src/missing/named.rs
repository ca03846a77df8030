//! From what a result prints back to its declaration.

use super::{Missing, declared};
use crate::name_pattern;

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
    use std::fmt::Display;

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
