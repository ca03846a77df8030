//! The JSON of the critical path: what the end of a launch waited for, back to its begin.
//!
//! Owns names, units and how much of the chain is shown. Leaves the path to `analysis::time::critical_path`.

use super::ledger::{LedgerRow, rows};
use super::longest::longest;
use super::quantities::{milliseconds, ratio};
use super::usage::Usage;
use crate::time::critical_path as analysis;
use crate::time::critical_path::{EndedBy, EndsWith};
use crate::time::ledger::{Category, SplitBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, Quantity};

/// Steps that are reported, the longest of them: more than anybody reads, and some 400 KB.
const STEPS: usize = 2_000;

/// What the end of a launch waited for, back to its begin. Of each moment one thread has it, in one category.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalPath {
    /// When exec was released, `CLOCK_MONOTONIC`, ns.
    pub from: Nanos,
    /// When the program was ready, or ended where it never was, `CLOCK_MONOTONIC`, ns.
    pub to: Nanos,
    /// Whether `to` is when it was ready.
    pub ready: bool,
    /// Why the path ends with the thread that it ends with.
    pub ends_with: EndsWith,
    /// From `from` to `to`. The rows and `unexplained` add up to it.
    pub time: Quantity,
    /// The categories that have time, the largest first.
    pub rows: Vec<LedgerRow>,
    /// Time of which nothing was recorded.
    pub unexplained: Quantity,
    /// `unexplained` as a share of `time`.
    pub unexplained_share: Option<Quantity>,
    /// What told user and kernel time apart in `rows`; threads have them together.
    pub split_by: SplitBy,
    /// The threads on it, those with most time first.
    pub threads: Vec<PathThread>,
    /// Steps of the chain.
    pub step_count: u64,
    /// The steps in order; of more than 2,000 the longest.
    pub steps: Vec<PathStep>,
    /// Time of the steps that are left out.
    pub left_out: Quantity,
}

/// What one thread has of the path. Its rows and `unexplained` add up to `time`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathThread {
    /// Its process, as in `shares`.
    pub process: String,
    /// Pid.
    pub pid: u32,
    /// Start of the process, `CLOCK_MONOTONIC`, ns.
    pub start: Nanos,
    /// Thread id.
    pub tid: u32,
    /// Name of the thread; null where it is not known.
    pub thread: Option<String>,
    /// Its time on the path.
    pub time: Quantity,
    /// Of the path.
    pub share: Option<Quantity>,
    /// The categories that have time, the largest first; shares are of `time`.
    pub rows: Vec<LedgerRow>,
    /// Time of which nothing was recorded.
    pub unexplained: Quantity,
}

/// A step of the chain: a thread that did one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathStep {
    /// Pid.
    pub pid: u32,
    /// Start of the process, `CLOCK_MONOTONIC`, ns.
    pub start: Nanos,
    /// Thread id.
    pub tid: u32,
    /// Begin, `CLOCK_MONOTONIC`, ns.
    pub from: Nanos,
    /// End, `CLOCK_MONOTONIC`, ns.
    pub to: Nanos,
    /// What it did, `on_cpu` for all the time that it ran; null where nothing was recorded.
    pub category: Option<Category>,
    /// Who ended it, for a wait; null else.
    pub ended_by: Option<EndedBy>,
}

/// The critical path of a recorded launch, `None` as [`analysis::time::critical_path`]; processes are called as in its shares.
pub fn of_tables(tables: &Tables, usage: &Usage) -> Option<CriticalPath> {
    let found = analysis::critical_path(tables)?;
    let name = usage.namer();
    let whole = found.to - found.from;
    let threads = found.threads.into_iter().map(|one| PathThread {
        process: name(one.process),
        pid: one.process.pid,
        start: one.process.start,
        tid: one.tid,
        time: milliseconds(one.time()),
        share: ratio(one.time().0 as f64, whole.0),
        rows: rows(&one.account, one.time(), None),
        unexplained: milliseconds(one.unexplained),
        thread: one.name,
    });
    let threads = threads.collect();
    let step_count = found.steps.len() as u64;
    let steps = found.steps.iter().map(|step| {
        let printed = PathStep {
            pid: step.process.pid,
            start: step.process.start,
            tid: step.tid,
            from: step.from,
            to: step.to,
            category: step.category,
            ended_by: step.ended_by,
        };
        (step.time().0, printed)
    });
    // What is left out stands in `step_count` and `left_out`.
    let steps = longest(steps.collect(), STEPS, "steps", &mut Vec::new());
    let shown: Nanos = steps.iter().map(|step| step.to - step.from).sum();
    Some(CriticalPath {
        from: found.from,
        to: found.to,
        ready: found.is_ready,
        ends_with: found.ends_with,
        time: milliseconds(whole),
        rows: rows(&found.account, whole, found.kernel_interval),
        unexplained: milliseconds(found.unexplained),
        unexplained_share: ratio(found.unexplained.0 as f64, whole.0),
        split_by: found.split_by,
        threads,
        step_count,
        steps,
        left_out: milliseconds(whole - shown),
    })
}
