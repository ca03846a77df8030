//! Findings, a program, and what one fix proposes for them, made up for tests.
//!
//! Stands below the fixes: uses what all of them are made from, and neither a fix nor the list of them.

use crate::declaration::Declaration;
use crate::machine::Machine;
use crate::plan::FixPlan;
use crate::program::Program;
use crate::proposal::Proposal;
use slowpath_analysis::Finding;
use slowpath_analysis::finding::{Confidence, Evidence, row};
use slowpath_analysis::fix_inputs::FixInputs;
use slowpath_tables::{Quantity, Unit};
use std::collections::BTreeMap;
use std::ffi::OsString;

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

/// A program that runs from these files.
pub(crate) fn program(mapped: &[&str]) -> Program {
    let executables = ["/usr/bin/video".to_owned()].into();
    let mapped = mapped.iter().map(|path| (*path).to_owned()).collect();
    Program { name: "video".to_owned(), executables, mapped, ..Program::default() }
}

/// What a fix proposes for findings of one program.
pub(crate) fn proposed(
    fix: &Declaration,
    findings: &[Finding],
    program: &Program,
    environment: &[(&str, &str)],
    machine: &Machine,
) -> Vec<Proposal> {
    let environment: Vec<(OsString, OsString)> =
        environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
    let programs = vec![program.clone(); findings.len()];
    fix.proposals(findings, &programs, &environment, machine, 1.0)
}

/// The plan of a fix for a finding about this artifact and three others, which the children of user 7 cannot use.
pub(crate) fn proposed_for(fix: &Declaration, artifact: &str) -> FixPlan {
    let mut one = finding(fix.name, 30.0);
    one.subject.extend(row([
        ("process", "child".into()),
        ("uid", 7.into()),
        ("artifact", artifact.into()),
        ("artifacts", 4.into()),
        ("family", "*.pyc".into()),
    ]));
    let made = proposed(fix, &[one], &Program::default(), &[], &Machine::default()).remove(0);
    assert!(made.predicted.unwrap().value < 0.0);
    made.plan
}
