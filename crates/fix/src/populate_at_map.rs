//! The fix `populate_at_map`: pages are brought in one call when memory is mapped, not one by one when they are used.
//!
//! Owns why slowpath cannot try it: malloc's own mmap is a call inside the C library, which nothing that is loaded before it can
//! take the place of, and glibc has no setting for `MAP_POPULATE`. In the source it is one line.

use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Trial};
use crate::proposal::{Proposal, places};
use crate::source_place::plan_in_source;
use slowpath_analysis::memory::memory_fixes::POPULATE_AT_MAP;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: POPULATE_AT_MAP,
    former: &[],
    title: "page tables are filled when memory is mapped",
    what: "MAP_POPULATE, or madvise(MADV_POPULATE_WRITE), brings all pages of a block in one call.",
    why: "The kernel is entered once instead of once for each page; it zeroes every page all the same.",
    price: "unused pages become resident too",
    by_hand: "in the source: one flag of mmap(2), or one call of madvise(2)",
    trial: "not by slowpath: it is a change of the source",
    propose: Some(proposals),
};

/// One proposal, which cannot be tried.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    let plan = FixPlan {
        title: "pages come with the mapping, in one call".to_owned(),
        changes: vec![Change {
            what: "the source, where the block is allocated".to_owned(),
            from: None,
            to: "madvise(MADV_POPULATE_WRITE) on its whole pages (Linux 5.14), or mmap with MAP_POPULATE".to_owned(),
        }],
        side_effects: vec!["unused pages become resident too".to_owned()],
        price: "the kernel still zeroes every page; only entering it for each one is saved".to_owned(),
        security_cost: "none".to_owned(),
        trial: Trial {
            possible: false,
            how: "malloc's mmap is inside the C library and cannot be replaced; change the source".to_owned(),
        },
        ..plan_in_source(POPULATE_AT_MAP, "", "where the block is allocated")
    };
    let findings = places(case.findings);
    vec![Proposal { plan, findings, predicted: None, gap: None, caution: None, needs: None }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, proposed};

    #[test]
    fn it_is_shown_and_not_tried() {
        let findings = [finding(POPULATE_AT_MAP, 1.0), finding(POPULATE_AT_MAP, 1.0)];
        let made = proposed(&FIX, &findings, &crate::Program::default(), &[], &Machine::default());
        assert_eq!(made.len(), 1);
        assert!(
            !made[0].plan.trial.possible && made[0].plan.tried().environment().is_empty() && made[0].findings == [0, 1]
        );
    }
}
