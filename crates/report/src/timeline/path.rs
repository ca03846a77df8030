//! The critical path to ready, as it is drawn through the threads.

use super::page_numbers::PageNumbers;
use super::states::{NOT_RECORDED, state_of};
use crate::columns::{Numbers, base64};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::time::critical_path::critical_path;
use slowpath_analysis::time::ledger::{Category, ThreadStates};
use slowpath_recording::Tables;
use slowpath_tables::Nanos;

/// Steps of the page, the longest of them: 7 bytes each.
const MOST_STEPS: usize = 200_000;

/// What the end of the launch waited for, back to its begin: of each moment one thread has it. Columns of one length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelinePath {
    /// Begin, ns since `zero`.
    pub from_ns: i64,
    /// End: when the program was ready, or ended where it never was.
    pub to_ns: i64,
    /// Whether `to_ns` is when it was ready.
    pub is_ready: bool,
    /// How many steps.
    pub count: u64,
    /// Since the end of the step before, ns, of the first since `from_ns`: 0 unless steps are left out. LEB128 in base64.
    pub gaps: String,
    /// Length, ns. LEB128 in base64.
    pub lengths: String,
    /// Index into `threads`, and after the last of them for a thread that is not here. LEB128 in base64.
    pub threads: String,
    /// What the thread did: index into `states`, a byte each, in base64.
    pub states: String,
    /// Steps that are left out, the shortest.
    pub left_out: u64,
}

pub(super) fn of_tables(tables: &Tables, found: &ThreadStates<'_>, numbers: &PageNumbers) -> Option<TimelinePath> {
    let path = critical_path(tables)?;
    let nobody = numbers.thread.iter().flatten().count() as u64;
    let mut steps = path.steps;
    let left_out = steps.len().saturating_sub(MOST_STEPS);
    if left_out > 0 {
        steps.sort_unstable_by_key(|step| (std::cmp::Reverse(step.time()), step.from));
        steps.truncate(MOST_STEPS);
        steps.sort_unstable_by_key(|step| step.from);
    }
    let (mut gaps, mut lengths, mut threads, mut states) =
        (Numbers::default(), Numbers::default(), Numbers::default(), Vec::with_capacity(steps.len()));
    let mut before = path.from;
    for step in &steps {
        gaps.push((step.from - before).0);
        lengths.push(step.time().0);
        // A step ends within the life of its thread.
        let thread = numbers.thread(found.of_process(step.process, step.tid, Nanos(step.to.0.saturating_sub(1))));
        threads.push(thread.map_or(nobody, u64::from));
        let category = step.category.filter(|category| *category != Category::OnCpu);
        states.push(match (step.category, category) {
            (None, _) => NOT_RECORDED,
            (_, category) => state_of(category, true),
        });
        before = step.to;
    }
    Some(TimelinePath {
        from_ns: numbers.since_zero(path.from),
        to_ns: numbers.since_zero(path.to),
        is_ready: path.is_ready,
        count: steps.len() as u64,
        gaps: gaps.text(),
        lengths: lengths.text(),
        threads: threads.text(),
        states: base64(&states),
        left_out: left_out as u64,
    })
}
