//! What the kernel says of a thread's filters and speculation (proc_pid_status(5); the states: Documentation/userspace-api/spec_ctrl.rst).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;

/// Lines of `/proc/PID/task/TID/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadState {
    /// `Seccomp`: 0 none, 1 strict, 2 filter; null where the kernel has no seccomp.
    pub seccomp: Option<u32>,
    /// `Seccomp_filters`: how many; null before Linux 5.9.
    pub filters: Option<u32>,
    /// `Speculation_Store_Bypass`: whether loads may overtake stores.
    pub store_bypass: Option<String>,
    /// `SpeculationIndirectBranch`: whether indirect branches are predicted.
    pub indirect_branch: Option<String>,
}

impl ThreadState {
    /// Of a thread of this process.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn of(tid: u32) -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read_to_string(format!("/proc/self/task/{tid}/status"))?))
    }

    /// Of the text of such a file.
    pub fn parse(text: &str) -> Self {
        let line = |key: &str| {
            text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(|value| value.trim().to_owned())
        };
        Self {
            seccomp: line("Seccomp").and_then(|value| value.parse().ok()),
            filters: line("Seccomp_filters").and_then(|value| value.parse().ok()),
            store_bypass: line("Speculation_Store_Bypass"),
            // The second spelling is that of some vendors' kernels.
            indirect_branch: line("SpeculationIndirectBranch").or_else(|| line("Speculation_Indirect_Branch")),
        }
    }

    /// The states of speculation with the names of their factors.
    pub(crate) fn speculation(&self) -> [(&'static str, Option<&str>); 2] {
        [(STORE_BYPASS, self.store_bypass.as_deref()), (INDIRECT_BRANCH, self.indirect_branch.as_deref())]
    }
}

/// Names of the factors, as `slowpath context` has them.
pub(crate) const STORE_BYPASS: &str = "speculative_store_bypass";
pub(crate) const INDIRECT_BRANCH: &str = "indirect_branch_speculation";

impl std::fmt::Display for ThreadState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |value: Option<u32>| value.map_or("not reported".to_owned(), |value| value.to_string());
        let text = |value: &Option<String>| value.clone().unwrap_or("not reported".to_owned());
        write!(
            f,
            "Seccomp {}, filters {}, store bypass: {}, indirect branch: {}",
            number(self.seccomp),
            number(self.filters),
            text(&self.store_bypass),
            text(&self.indirect_branch)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_and_what_a_kernel_does_not_tell_is_missing() {
        let text = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\nSpeculation_Store_Bypass:\tthread vulnerable\n";
        let state = ThreadState::parse(&format!("{text}SpeculationIndirectBranch:\tconditional enabled\n"));
        assert_eq!((state.seccomp, state.filters), (Some(2), Some(3)));
        assert_eq!(state.store_bypass.as_deref(), Some("thread vulnerable"));
        assert_eq!(state.indirect_branch.as_deref(), Some("conditional enabled"));
        let other = ThreadState::parse(&format!("{text}Speculation_Indirect_Branch:\tconditional enabled\n"));
        assert_eq!(other, state);
        assert_eq!(ThreadState::parse(""), ThreadState::default());
    }

    #[test]
    fn a_thread_of_this_process_is_read() {
        assert!(ThreadState::of(std::process::id()).unwrap().seccomp.is_some());
        assert!(ThreadState::of(0).is_err());
    }
}
