//! The fix `reuse_buffer`: the program keeps a block and uses it again, or does without it.
//!
//! Owns what is to be changed there ([`crate::source_place`] says where).

use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::FixPlan;
use crate::proposal::Proposal;
use crate::proposal_per_finding;
use crate::source_place::{change_of_asker, place, plan_in_source};
use slowpath_analysis::Finding;
use slowpath_analysis::memory::memory_fixes::REUSE_BUFFER;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: REUSE_BUFFER,
    former: &["keep_buffer"],
    title: "the program keeps a buffer and uses it again",
    what: "The block is allocated once, or as many as are used at the same time, instead of once for each frame, \
           message or file.",
    why: "Its pages are mapped, zeroed and faulted in once.",
    price: "resident memory: the block stays between two uses, with the data of the earlier one",
    by_hand: "in the source, at the place that the finding names",
    trial: "not by slowpath: it is a change of the source",
    propose: Some(proposals),
};

/// One proposal a finding.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    let places: Vec<_> = case.findings.iter().copied().filter(|one| is_about_a_stack(one.1)).collect();
    proposal_per_finding::proposals(&places, plan)
}

/// Whether a finding is about who allocates; one about what blocks cost elsewhere follows from those of the blocks.
fn is_about_a_stack(finding: &Finding) -> bool {
    finding.subject.contains_key("stack")
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let place = place(finding).unwrap_or_else(|| "who asks for the block is not known".to_owned());
    FixPlan {
        changes: vec![change_of_asker(
            finding,
            REUSE_BUFFER,
            &place,
            "a new block each time, asked for by",
            "keep the block and use it again",
        )],
        side_effects: vec!["what was in the block before is still in it: nobody zeroes it between two uses".to_owned()],
        price: "resident memory: the block stays between two uses".to_owned(),
        security_cost: "data of an earlier use stay in memory for longer".to_owned(),
        ..plan_in_source(REUSE_BUFFER, number, &place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, proposed};
    use slowpath_analysis::finding::{Row, row};
    use slowpath_tables::{Quantity, Unit};

    fn with_stack(row: Row) -> Finding {
        let mut finding = finding(REUSE_BUFFER, 10.0);
        finding.subject.insert("stack".to_owned(), "main;copy_frame;malloc".into());
        finding.evidence[0].rows.push(row);
        finding
    }

    #[test]
    fn the_place_in_the_source_and_the_saving_are_shown() {
        let asked = row([
            ("function", "copy_frame".into()),
            ("asked", true.into()),
            ("source_file", "/src/frame_buffer.cpp".into()),
            ("source_line", 136.into()),
        ]);
        let made = proposed(&FIX, &[with_stack(asked)], &crate::Program::default(), &[], &Machine::default()).remove(0);
        assert_eq!(made.plan.title, "in the source: copy_frame (frame_buffer.cpp:136)");
        assert_eq!(made.plan.changes[0].to, "keep one block");
        assert!(made.plan.changes[0].from.as_ref().unwrap().ends_with("main;copy_frame;malloc"));
        assert_eq!(made.predicted, Some(Quantity::interval(-10.0, -12.0, -9.0, Unit::Ms)));
        assert!(!made.plan.trial.possible && made.gap.is_none());
    }

    #[test]
    fn without_lines_the_file_is_shown_and_several_places_are_several_plans() {
        let asked = row([("function", "f".into()), ("file", "libvideo.so".into()), ("asked", true.into())]);
        let mut nobody = finding(REUSE_BUFFER, 1.0);
        nobody.subject.insert("stack".to_owned(), "".into());
        let findings = [with_stack(asked), nobody];
        let made = proposed(&FIX, &findings, &crate::Program::default(), &[], &Machine::default());
        let shown: Vec<_> = made.iter().map(|one| (one.plan.name.as_str(), one.plan.title.as_str())).collect();
        let unknown = "in the source: who asks for the block is not known";
        assert_eq!(shown, [("reuse_buffer 1", "in the source: f in libvideo.so"), ("reuse_buffer 2", unknown)]);
    }

    #[test]
    fn what_a_block_costs_elsewhere_is_no_place_of_its_own() {
        let asked = row([("function", "f".into()), ("file", "libvideo.so".into()), ("asked", true.into())]);
        let elsewhere = finding(REUSE_BUFFER, 10.0);
        let made =
            proposed(&FIX, &[with_stack(asked), elsewhere], &crate::Program::default(), &[], &Machine::default());
        assert_eq!(made.iter().map(|one| one.plan.name.as_str()).collect::<Vec<_>>(), [REUSE_BUFFER]);
    }
}
