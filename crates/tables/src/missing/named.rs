//! From what a result prints back to its declaration.

use super::{Missing, declared};
use crate::name_pattern;

/// The declaration of what is printed as `what`: the one of several that leaves least open.
pub fn named(what: &str) -> Option<&'static Missing> {
    let fitting = declared::ALL.iter().copied().filter(|one| name_pattern::fits(one.name, what));
    fitting.max_by_key(|one| name_pattern::literal(one.name))
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
}
