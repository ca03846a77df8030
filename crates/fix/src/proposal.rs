//! From what was found to what can be tried with one launch: every fix that findings name, as a plan with its treatment.
//!
//! Owns what fixes that change a launch without a lab share; each declares who makes it. A finding is known by the names of its
//! fixes alone. Leaves each plan to its module, and arms and launches to who tries them.

use crate::program::Program;
use crate::{Declaration, FixPlan, replace_allocator};
use serde::{Deserialize, Serialize};
use slowpath_analysis::Finding;
use slowpath_recording::HugePages;
use slowpath_tables::missing::declared;
use slowpath_tables::{Quantity, Unavailable, Unit};
use std::ffi::{OsStr, OsString};

/// What this machine offers to fixes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The allocator that is installed and preferred: its library.
    pub allocator: Option<String>,
    /// Mode of transparent huge pages (`always`, `madvise`, `never`); `None` where the kernel has none.
    pub huge_pages: Option<String>,
}

impl Machine {
    /// Looks at this machine.
    pub fn look() -> Self {
        Self {
            allocator: replace_allocator::installed(),
            huge_pages: HugePages::of_this_machine().map(|told| told.enabled),
        }
    }
}

/// What a fix is made from.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The findings that name it, with their places in the list of all, most costly first.
    pub findings: &'a [(usize, &'a Finding)],
    /// The program of each of these findings.
    pub programs: &'a [Program],
    /// The environment of an untreated launch.
    pub environment: &'a [(OsString, OsString)],
    /// The machine.
    pub machine: &'a Machine,
    /// CPU time of a launch that nobody records, as a share of the recorded one's without what recording its faults took: samples, waits and
    /// memory calls make work dearer, too.
    pub unrecorded: f64,
}

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

/// All fixes for these findings. `program` returns the program of a finding; `unrecorded` is as in [`Case`].
pub fn propose(
    findings: &[Finding],
    program: impl Fn(&Finding) -> Program,
    environment: &[(OsString, OsString)],
    machine: &Machine,
    unrecorded: f64,
) -> Vec<Proposal> {
    let programs: Vec<Program> = findings.iter().map(program).collect();
    let made = |fix: &Declaration| {
        let named =
            findings.iter().enumerate().filter(|(_, finding)| finding.fixes.iter().any(|name| name == fix.name));
        let named: Vec<(usize, &Finding)> = named.collect();
        let programs: Vec<Program> = named.iter().map(|(number, _)| programs[*number].clone()).collect();
        let Some(propose) = fix.propose.filter(|_| !named.is_empty()) else { return Vec::new() };
        propose(&Case { findings: &named, programs: &programs, environment, machine, unrecorded })
    };
    crate::ALL.iter().flat_map(made).collect()
}

/// Fixes that findings name and nothing here makes: those that need a lab.
pub fn others(findings: &[Finding]) -> Vec<String> {
    let named = findings.iter().flat_map(|finding| &finding.fixes);
    let is_made = |name: &str| crate::ALL.iter().any(|fix| fix.name == name && fix.propose.is_some());
    let mut others: Vec<String> = named.filter(|fix| !is_made(fix)).cloned().collect();
    others.sort();
    others.dedup();
    others
}

impl<'a> Case<'a> {
    /// A variable of an untreated launch.
    pub(crate) fn variable(&self, name: &str) -> Option<&'a OsStr> {
        self.environment.iter().rfind(|(one, _)| one == name).map(|(_, value)| value.as_os_str())
    }

    /// The findings of which the program does not refuse the fix, and why the others do.
    pub(crate) fn willing(
        &self,
        refuses: impl Fn(&Program) -> Option<String>,
    ) -> (Vec<(usize, &'a Finding)>, Vec<String>) {
        let (mut willing, mut reasons) = (Vec::new(), Vec::new());
        for (finding, program) in self.findings.iter().zip(self.programs) {
            match refuses(program) {
                None => willing.push(*finding),
                Some(reason) => reasons.push(reason),
            }
        }
        reasons.dedup();
        (willing, reasons)
    }
}

/// Why the environment of a launch would not reach the allocator of this program.
pub(crate) fn unreachable(program: &Program) -> Option<String> {
    program.secure.clone().or_else(|| program.without_glibc())
}

/// A list of paths, in front of what the user has in the same variable.
pub(crate) fn before(own: &OsStr, user: Option<&OsStr>) -> OsString {
    let mut value = own.to_owned();
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        value.push(":");
        value.push(user);
    }
    value
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
pub(crate) mod tests {
    use super::*;
    use slowpath_analysis::finding::{Confidence, Evidence};
    use slowpath_analysis::fix_inputs::FixInputs;
    use slowpath_analysis::memory::memory_fixes;
    use std::collections::BTreeMap;

    /// A finding of no pattern in particular that names a fix.
    pub(crate) fn finding(fix: &str, saving: f64) -> Finding {
        let ways = BTreeMap::from([(fix.to_owned(), "keep one block".to_owned())]);
        Finding {
            name: "some_pattern".to_owned(),
            former_name: None,
            title: String::new(),
            subject: BTreeMap::from([("process".to_owned(), "video".into())]),
            cost: Quantity::exact(saving, Unit::Ms),
            predicted_saving: Some(Quantity::interval(saving, saving - 1.0, saving + 2.0, Unit::Ms)),
            confidence: Confidence::High,
            reasons: Vec::new(),
            evidence: vec![Evidence { text: String::new(), rows: Vec::new() }],
            fixes: vec![fix.to_owned()],
            fix_inputs: FixInputs { ways, ..FixInputs::default() },
            see_by_hand: String::new(),
        }
    }

    /// What is proposed for findings of one program.
    pub(crate) fn proposed(
        findings: &[Finding],
        program: &Program,
        environment: &[(&str, &str)],
        machine: &Machine,
    ) -> Vec<Proposal> {
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        propose(findings, |_| program.clone(), &environment, machine, 1.0)
    }

    #[test]
    fn findings_that_name_nothing_that_is_made_here_have_no_proposal_and_are_told() {
        let findings = [finding("preload_plan", 1.0), finding("nothing", 1.0), finding("preload_plan", 1.0)];
        assert!(proposed(&findings, &Program::default(), &[], &Machine::default()).is_empty());
        assert_eq!(others(&findings), ["nothing", "preload_plan"]);
        assert!(others(&[finding(memory_fixes::REUSE_BUFFER, 1.0)]).is_empty());
    }

    #[test]
    fn a_prediction_is_the_sum_of_what_findings_predict_with_the_sign_of_a_change() {
        let (one, two) = (finding("x", 10.0), finding("x", 20.0));
        let both = predicted(&[(0, &one), (1, &two)]).unwrap();
        assert_eq!(both, Quantity::interval(-30.0, -34.0, -28.0, Unit::Ms));
        let unknown = Finding { predicted_saving: None, ..one };
        assert_eq!(predicted(&[(0, &unknown)]), None);
    }
}
