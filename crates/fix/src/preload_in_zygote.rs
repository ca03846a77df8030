//! The fix `preload_in_zygote`: one process does the common start of the children once, and forks them.
//!
//! Owns saying up to which file they start alike, and what a copy of a process brings with it. It is a change of how the program starts
//! its children, so slowpath predicts what it saves and does not try it.

use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan};
use crate::proposal::{Case, Proposal};
use crate::proposal_per_finding;
use crate::source_place::plan_in_source;
use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::findings::repeated_child_work::PRELOAD_IN_ZYGOTE;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: PRELOAD_IN_ZYGOTE,
    former: &[],
    title: "children are forked from a process that has started once",
    what: "One process (a zygote) loads, relocates and initialises what all children need, and then waits; each child is a fork of it \
           instead of a program that is executed.",
    why: "A fork inherits what was done: libraries stay mapped and relocated, files read, tables built. A child pays for the copy of the \
        page \
          tables, and for the pages that it writes.",
    price: "the zygote stays in memory, though its pages are shared with the children; what is preloaded must be able to be forked: no threads, \
            no open connections, random seeds drawn anew in each child",
    by_hand: "`slowpath zygote advise -- CMD` says whether it pays, `slowpath zygote serve` is one; in Python: \
              multiprocessing.set_start_method(\"forkserver\") with set_forkserver_preload, or os.fork after the imports; Android and \
              Chromium have a zygote of their own",
    trial: "not by slowpath: it is a change of how the program starts its children",
};

/// One proposal a finding: each is about the children of another program.
pub fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let text = |name: &str| finding.subject.get(name).and_then(Value::as_str).unwrap_or("the program");
    let (process, processes) = (text("process"), finding.subject.get("processes").and_then(Value::as_u64).unwrap_or(0));
    let place = format!("where {process} is started");
    FixPlan {
        title: format!("the {processes} {process} processes are forked from one that has started"),
        changes: vec![Change {
            what: format!("the source: {place}"),
            from: Some("each starts by itself".to_owned()),
            to: "start one up to the point where they begin to differ, and fork the others from it".to_owned(),
        }],
        side_effects: vec![
            "threads, locks, connections and random seeds of the first process are copied as they are: create them after the fork".to_owned(),
        ],
        price: "one more process stays in memory; its pages are shared until a child writes them".to_owned(),
        security_cost: "all children have the same layout of addresses, so what is learned of one holds for all; and they hold whatever the \
                        first one had read"
            .to_owned(),
        ..plan_in_source(PRELOAD_IN_ZYGOTE, number, &place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposal::Machine;
    use crate::proposal::tests::{finding, proposed};
    use slowpath_analysis::finding::row;

    #[test]
    fn the_plan_names_the_children_and_what_copies_share() {
        let mut one = finding(PRELOAD_IN_ZYGOTE, "", 30.0);
        one.subject.extend(row([("process", "worker".into()), ("processes", 4.into())]));
        let made = proposed(&[one], &crate::Program::default(), &[], &Machine::default()).remove(0);
        assert_eq!(made.plan.title, "the 4 worker processes are forked from one that has started");
        assert!(!made.plan.trial.possible && made.predicted.unwrap().value < 0.0);
        assert!(made.plan.security_cost.contains("layout of addresses"));
    }
}
