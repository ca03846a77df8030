//! Which files of a plan are still those it was made for.
//!
//! Owns the answer to `preload check`. Follows the rules of [`crate::preload_plan::open`], so that what is reported as
//! usable is what a replay by the same user would use.

use crate::preload_plan::PreloadPlan;
use crate::preload_plan::open::{Mounts, SkipReason, open_planned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Bytes;
use std::collections::BTreeMap;

/// A file that a replay would leave out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unusable {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: SkipReason,
    /// Bytes of the plan that this costs.
    pub bytes: Bytes,
}

/// State of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Files of the plan.
    pub files: u64,
    /// Bytes of the plan.
    pub bytes: Bytes,
    /// Bytes that a replay by this user would ask for.
    pub usable_bytes: Bytes,
    /// Files that would be left out, most bytes first.
    pub unusable: Vec<Unusable>,
}

/// Checks every file of a plan as the calling user.
pub fn check(plan: &PreloadPlan, network: bool) -> CheckReport {
    let mut bytes: BTreeMap<u32, Bytes> = BTreeMap::new();
    for range in &plan.ranges {
        let (from, to) = plan.byte_range(range);
        *bytes.entry(range.file).or_default() += Bytes(to - from);
    }
    let mut report = CheckReport { files: plan.files.len() as u64, bytes: plan.bytes(), ..CheckReport::default() };
    let mounts = Mounts::now(network);
    for (number, file) in (0u32..).zip(&plan.files) {
        let bytes = bytes.get(&number).copied().unwrap_or_default();
        match open_planned(file, &mounts) {
            Ok(_) => report.usable_bytes += bytes,
            Err(reason) => report.unusable.push(Unusable { path: file.path.clone(), reason, bytes }),
        }
    }
    report.unusable.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    report
}
