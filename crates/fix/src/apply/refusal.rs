//! Why a file cannot keep a fix, and what else helps.

use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;

/// Why a fix cannot be kept in such a file, and what else helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why not.
    pub reason: String,
    /// What else helps.
    pub remedy: String,
}

impl Refusal {
    /// `reason`, and what helps.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }

    /// As a gap: this kind of file, chosen by `option`, for this plan.
    pub fn gap(self, option: &str, plan: &str) -> Unavailable {
        declared::TARGET.of(&[&option, &plan], self.reason, self.remedy)
    }
}
