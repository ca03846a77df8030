//! What a fix is made from: the findings that name it, with what is known of their programs and of this machine.
//!
//! A finding is known by the names of its fixes alone. Leaves choosing the findings to [`crate::declaration`], and the plan to the fix.

use crate::machine::Machine;
use crate::program::Program;
use slowpath_analysis::Finding;
use std::ffi::{OsStr, OsString};

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
