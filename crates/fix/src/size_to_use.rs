//! The fix `size_to_use`: a program makes, or clears, no more of a buffer than it uses.
//!
//! Owns what is to be changed there ([`crate::source_place`] says where).

use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::proposal::{Case, Proposal};
use crate::source_change;
use crate::source_place::place;
use crate::treatment::Treatment;
use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::memory_fixes::{SIZE_TO_USE, rows_of};

/// The fix.
pub const FIX: Declaration = Declaration {
    name: SIZE_TO_USE,
    title: "no more of a buffer is made or cleared than is used",
    what: "The buffer is allocated, or cleared, in the size that is used.",
    why: "Pages that hold nothing are not faulted in, not zeroed twice, and take no memory.",
    price: "none where the size is known; else the cost of growing",
    by_hand: "in the source, at the place that the finding names (reserve instead of resize, calloc instead of malloc \
              and memset)",
    trial: "not by slowpath: it is a change of the source",
};

/// One proposal a finding.
pub fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    source_change::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let how = rows_of(finding, SIZE_TO_USE).find_map(|row| row.get("how")?.as_str());
    let place = place(finding).unwrap_or_else(|| "who asks for the block is not known".to_owned());
    let stack = finding.subject.get("stack").and_then(Value::as_str).filter(|stack| !stack.is_empty());
    FixPlan {
        fix: SIZE_TO_USE.to_owned(),
        name: format!("{SIZE_TO_USE}{number}"),
        title: format!("in the source: {place}"),
        changes: vec![Change {
            what: format!("the source: {place}"),
            from: stack.map(|stack| format!("more is cleared than is used, asked for by {stack}")),
            to: how.unwrap_or("make, or clear, what is used only").to_owned(),
        }],
        scope: Scope::Source,
        privilege: Privilege::User,
        side_effects: vec!["input that needs more makes the buffer grow, which copies it".to_owned()],
        price: "none where the size is known; else the cost of growing".to_owned(),
        security_cost:
            "none where what is not cleared comes from the kernel; memory that the program freed before holds old data"
                .to_owned(),
        undo: "take the change of the source back".to_owned(),
        trial: Trial { possible: false, how: format!("change the source: {place}") },
        treatment: Treatment::Source { place },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposal::Machine;
    use crate::proposal::tests::{finding, proposed};
    use slowpath_analysis::finding::row;
    use slowpath_tables::{Quantity, Unit};

    #[test]
    fn the_place_the_change_and_the_saving_are_told() {
        let mut finding = finding(SIZE_TO_USE, "", 10.0);
        finding.subject.insert("stack".to_owned(), "main;make_table;malloc".into());
        finding.evidence[0].rows.push(row([
            ("function", "make_table".into()),
            ("asked", true.into()),
            ("source_file", "/src/table.cpp".into()),
            ("source_line", 12.into()),
        ]));
        let made = proposed(&[finding], &crate::Program::default(), &[], &Machine::default()).remove(0);
        assert_eq!((made.plan.fix.as_str(), made.plan.name.as_str()), (SIZE_TO_USE, SIZE_TO_USE));
        assert_eq!(made.plan.title, "in the source: make_table (table.cpp:12)");
        assert!(made.plan.changes[0].from.as_ref().unwrap().ends_with("main;make_table;malloc"));
        assert_eq!(made.predicted, Some(Quantity::interval(-10.0, -12.0, -9.0, Unit::Ms)));
        assert!(!made.plan.trial.possible && made.environment().is_empty());
    }
}
