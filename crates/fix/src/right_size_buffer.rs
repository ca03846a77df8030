//! The fix `right_size_buffer`: a program makes, or clears, no more of a buffer than it uses.
//!
//! Owns what is to be changed there ([`crate::source_place`] says where).

use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::FixPlan;
use crate::proposal::Proposal;
use crate::proposal_per_finding;
use crate::source_place::{change_of_asker, place, plan_in_source};
use slowpath_analysis::Finding;
use slowpath_analysis::memory::memory_fixes::RIGHT_SIZE_BUFFER;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: RIGHT_SIZE_BUFFER,
    former: &["size_to_use"],
    title: "no more of a buffer is made or cleared than is used",
    what: "The buffer is allocated, or cleared, in the size that is used.",
    why: "Pages that hold nothing are not faulted in, not zeroed twice, and take no memory.",
    price: "none where the size is known; else the cost of growing",
    by_hand: "in the source, at the place that the finding names (reserve instead of resize, calloc instead of malloc \
              and memset)",
    trial: "not by slowpath: it is a change of the source",
    propose: Some(proposals),
};

/// One proposal a finding.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let place = place(finding).unwrap_or_else(|| "who asks for the block is not known".to_owned());
    FixPlan {
        changes: vec![change_of_asker(
            finding,
            RIGHT_SIZE_BUFFER,
            &place,
            "more is cleared than is used, asked for by",
            "make, or clear, what is used only",
        )],
        side_effects: vec!["input that needs more makes the buffer grow, which copies it".to_owned()],
        price: "none where the size is known; else the cost of growing".to_owned(),
        security_cost:
            "none where what is not cleared comes from the kernel; memory that the program freed before holds old data"
                .to_owned(),
        ..plan_in_source(RIGHT_SIZE_BUFFER, number, &place)
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
    fn the_place_the_change_and_the_saving_are_shown() {
        let mut finding = finding(RIGHT_SIZE_BUFFER, 10.0);
        finding.subject.insert("stack".to_owned(), "main;make_table;malloc".into());
        finding.evidence[0].rows.push(row([
            ("function", "make_table".into()),
            ("asked", true.into()),
            ("source_file", "/src/table.cpp".into()),
            ("source_line", 12.into()),
        ]));
        let made = proposed(&FIX, &[finding], &crate::Program::default(), &[], &Machine::default()).remove(0);
        assert_eq!((made.plan.fix.as_str(), made.plan.name.as_str()), (RIGHT_SIZE_BUFFER, RIGHT_SIZE_BUFFER));
        assert_eq!(made.plan.title, "in the source: make_table (table.cpp:12)");
        assert!(made.plan.changes[0].from.as_ref().unwrap().ends_with("main;make_table;malloc"));
        assert_eq!(made.predicted, Some(Quantity::interval(-10.0, -12.0, -9.0, Unit::Ms)));
        assert!(!made.plan.trial.possible && made.plan.tried().environment().is_empty());
    }
}
