//! The fix `advise_huge_pages`: memory that a program maps itself, or large blocks of its allocator, are aligned to a huge page and
//! ask for one (`madvise(MADV_HUGEPAGE)`).
//!
//! Owns saying where: function, file and line, and the whole stack, from the finding's evidence. It is a change of the source, so
//! slowpath predicts what it saves and does not try it; for memory of glibc's malloc [`crate::huge_pages`] does the same from outside.

use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::FixPlan;
use crate::proposal::Proposal;
use crate::proposal_per_finding;
use crate::source_place::{change_of_asker, place, plan_in_source};
use slowpath_analysis::Finding;
use slowpath_analysis::memory::memory_fixes::ADVISE_HUGE_PAGES;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: ADVISE_HUGE_PAGES,
    former: &[],
    title: "the program asks for huge pages where it maps memory",
    what: "The block is aligned to 2 MiB and advised with madvise(MADV_HUGEPAGE) before it is touched first.",
    why: "One fault brings 2 MiB instead of 4 KiB.",
    price: "resident memory: a huge page is resident as a whole once one byte of it is used",
    by_hand: "in the source, at the place that the finding names",
    trial: "not by slowpath: it is a change of the source",
    propose: Some(proposals),
};

/// One proposal a finding: each is another place in the source.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let place = place(finding).unwrap_or_else(|| "who maps the memory is not known".to_owned());
    FixPlan {
        changes: vec![change_of_asker(
            finding,
            ADVISE_HUGE_PAGES,
            &place,
            "memory that asks for nothing, mapped by",
            "align the memory to 2 MiB and call madvise(MADV_HUGEPAGE)",
        )],
        side_effects: vec![
            "a fault zeroes 2 MiB at once: fewer waits, longer ones; the kernel may move memory to find such pages"
                .to_owned(),
            "after a fork the first write to a shared huge page splits it".to_owned(),
        ],
        price: "resident memory: a huge page is resident as a whole once one byte of it is used".to_owned(),
        security_cost: "none".to_owned(),
        ..plan_in_source(ADVISE_HUGE_PAGES, number, &place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, proposed};
    use slowpath_analysis::finding::row;
    use slowpath_tables::{Quantity, Unit};

    #[test]
    fn the_place_that_maps_is_shown_with_what_it_saves_and_is_not_tried() {
        let mut finding = finding(ADVISE_HUGE_PAGES, 10.0);
        finding.subject.insert("stack".to_owned(), "main;make_table;mmap".into());
        let asked = row([("function", "make_table".into()), ("file", "table".into()), ("asked", true.into())]);
        finding.evidence[0].rows.push(asked);
        let made = proposed(&FIX, &[finding], &crate::Program::default(), &[], &Machine::default()).remove(0);
        assert_eq!(made.plan.title, "in the source: make_table in table");
        assert!(made.plan.changes[0].from.as_ref().unwrap().ends_with("main;make_table;mmap"));
        assert_eq!(made.predicted, Some(Quantity::interval(-10.0, -12.0, -9.0, Unit::Ms)));
        assert!(!made.plan.trial.possible && made.gap.is_none() && made.plan.tried().environment().is_empty());
    }
}
