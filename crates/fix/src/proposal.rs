//! A fix for what was found, to be tried with one launch: its plan, what it is for and what it lacks.
//!
//! Owns what all makers of proposals fill in alike: the findings, the change that these predict together, a gap. Leaves each plan to its
//! fix, what it is made from to [`crate::case`], and arms and launches to who tries them.

use crate::plan::FixPlan;
use serde::{Deserialize, Serialize};
use slowpath_analysis::Finding;
use slowpath_tables::missing::declared;
use slowpath_tables::{Quantity, Unavailable, Unit};

/// A fix for what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// What it is.
    pub plan: FixPlan,
    /// The findings that it is for: places in the list of all.
    pub findings: Vec<usize>,
    /// Change of CPU time that the findings predict, negative is less; `None` where they predict none of this fix.
    pub predicted: Option<Quantity>,
    /// What this machine or this program lacks to try it; `None` too where nobody could from outside.
    pub gap: Option<Unavailable>,
    /// What a reader must know who sees that it did nothing.
    pub caution: Option<String>,
    /// What is to be looked up on this machine before it can be tried; `None` where nothing is, and once it is looked up.
    #[serde(default)]
    pub needs: Option<Lookup>,
}

/// What a plan needs to know of the machine's files, which only somebody with the rights to look at them finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lookup {
    /// Which files deny access, and the smallest changes that grant it.
    DenyingFiles,
    /// In which directories artifacts are made.
    ArtifactDirectories,
}

/// The places of findings.
pub(crate) fn places(findings: &[(usize, &Finding)]) -> Vec<usize> {
    findings.iter().map(|(number, _)| *number).collect()
}

/// The change that findings predict together where all their blocks are kept.
pub(crate) fn predicted(findings: &[(usize, &Finding)]) -> Option<Quantity> {
    let savings = findings.iter().filter_map(|(_, finding)| finding.predicted_saving);
    let sum = savings.filter(|saving| saving.unit == Unit::Ms).reduce(|a, b| Quantity {
        value: a.value + b.value,
        low: a.low.zip(b.low).map(|(a, b)| a + b),
        high: a.high.zip(b.high).map(|(a, b)| a + b),
        unit: Unit::Ms,
    })?;
    Some(-sum)
}

/// A gap of which `what` is the fix.
pub(crate) fn gap(fix: &str, reason: &str, remedy: &str) -> Unavailable {
    declared::TRIAL.of(&[&fix], reason, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::finding;

    #[test]
    fn a_prediction_is_the_sum_of_what_findings_predict_with_the_sign_of_a_change() {
        let (one, two) = (finding("x", 10.0), finding("x", 20.0));
        let both = predicted(&[(0, &one), (1, &two)]).unwrap();
        assert_eq!(both, Quantity::interval(-30.0, -34.0, -28.0, Unit::Ms));
        let unknown = Finding { predicted_saving: None, ..one };
        assert_eq!(predicted(&[(0, &unknown)]), None);
    }
}
