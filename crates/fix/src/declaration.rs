//! What a fix is before it is made for a program: its name and what people should know of it.
//!
//! Each fix declares itself in its own file; [`crate::ALL`] lists them. `slowpath explain` and the reference page come from here. Also what
//! one fix proposes; leaves the proposals of all to [`crate::propose`].

use crate::case::Case;
use crate::machine::Machine;
use crate::program::Program;
use crate::proposal::Proposal;
use slowpath_analysis::Finding;
use std::ffi::OsString;

/// A fix, declared.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name in JSON (`preload_plan`).
    pub name: &'static str,
    /// Names that it had in earlier versions, the latest first.
    pub former: &'static [&'static str],
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it changes.
    pub what: &'static str,
    /// Why that helps.
    pub why: &'static str,
    /// What it costs as long as it is applied.
    pub price: &'static str,
    /// How it is applied by hand, and undone.
    pub by_hand: &'static str,
    /// Whether slowpath tries it by itself, and how.
    pub trial: &'static str,
    /// What makes it for findings that name it; `None` for one that needs a lab, which whoever has one makes.
    pub propose: Option<fn(&Case<'_>) -> Vec<Proposal>>,
}

impl Declaration {
    /// What it proposes for those of the findings that name it. `programs` are those of all findings; `unrecorded` is as in [`Case`].
    pub(crate) fn proposals(
        &self,
        findings: &[Finding],
        programs: &[Program],
        environment: &[(OsString, OsString)],
        machine: &Machine,
        unrecorded: f64,
    ) -> Vec<Proposal> {
        let named = findings.iter().enumerate();
        let named = named.filter(|(_, finding)| finding.fixes.iter().any(|name| name == self.name));
        let named: Vec<(usize, &Finding)> = named.collect();
        let programs: Vec<Program> = named.iter().map(|(number, _)| programs[*number].clone()).collect();
        let Some(propose) = self.propose.filter(|_| !named.is_empty()) else { return Vec::new() };
        propose(&Case { findings: &named, programs: &programs, environment, machine, unrecorded })
    }
}
