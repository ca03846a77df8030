//! Changes that slowpath describes and does not try, of a program's source or of files: one proposal a finding.
//!
//! Leaves where a change of the source belongs to [`crate::source_place`], and what is to be changed to the fixes.

use crate::plan::FixPlan;
use crate::proposal::{Proposal, predicted};
use slowpath_analysis::Finding;

/// What the name of a plan ends with, the one at this place of so many.
pub(crate) fn number(at: usize, of: usize) -> String {
    if of == 1 { String::new() } else { format!(" {}", at + 1) }
}

/// One proposal a finding: each is another place, or another family of files. `plan` makes it, with the number that its name ends with where there
/// are several. Findings come with their numbers.
pub(crate) fn proposals(findings: &[(usize, &Finding)], plan: fn(&Finding, &str) -> FixPlan) -> Vec<Proposal> {
    let made = findings.iter().enumerate().map(|(at, one)| Proposal {
        plan: plan(one.1, &number(at, findings.len())),
        findings: vec![one.0],
        predicted: predicted(&[*one]),
        gap: None,
        caution: None,
        needs: None,
    });
    made.collect()
}
