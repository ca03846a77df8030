//! Changes of a program's source that findings ask for: one proposal for each of them.
//!
//! slowpath predicts what such a change saves and does not try it. Leaves where it belongs to [`crate::source_place`], and what is to
//! be changed to the fixes.

use crate::plan::FixPlan;
use crate::proposal::{Proposal, predicted};
use slowpath_analysis::Finding;

/// One proposal a finding: each is another place in the source. `plan` makes it, with the number that its name ends with where there
/// are several. Findings come with their numbers.
pub(crate) fn proposals(findings: &[(usize, &Finding)], plan: fn(&Finding, &str) -> FixPlan) -> Vec<Proposal> {
    let number = |at: usize| if findings.len() == 1 { String::new() } else { format!(" {}", at + 1) };
    let made = findings.iter().enumerate().map(|(at, one)| Proposal {
        plan: plan(one.1, &number(at)),
        findings: vec![one.0],
        predicted: predicted(&[*one]),
        gap: None,
        caution: None,
    });
    made.collect()
}
