//! What `slowpath android audit --apply --json` prints.

use super::repair::{Applied, RepairOutcome};
use crate::audit::AndroidAudit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-android-repair/1";

/// What `slowpath android audit --apply --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AndroidRepair {
    /// `slowpath-android-repair/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The audit before.
    pub before: AndroidAudit,
    /// What was run for each package.
    pub applied: Vec<Applied>,
    /// How many packages by what became of them.
    pub counts: BTreeMap<String, u64>,
    /// The audit after.
    pub after: AndroidAudit,
}

impl AndroidRepair {
    /// Repairs, judged by the audit after them.
    pub fn new(before: AndroidAudit, mut applied: Vec<Applied>, after: AndroidAudit) -> Self {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for one in &mut applied {
            one.judge(&after);
            *counts.entry(one.outcome.name().to_owned()).or_default() += 1;
        }
        Self { schema: SCHEMA.to_owned(), before, applied, counts, after }
    }

    /// Whether all packages are as they should be.
    pub fn is_all_fine(&self) -> bool {
        let is_fine = |one: &Applied| matches!(one.outcome, RepairOutcome::Repaired | RepairOutcome::NotNeeded);
        self.applied.iter().all(is_fine)
    }
}
