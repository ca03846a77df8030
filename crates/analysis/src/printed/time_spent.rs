//! The JSON of where time went, in a few parts.
//!
//! Owns names and units. Leaves the parts and their sums to `analysis::time::time_spent`.

use super::quantities::milliseconds;
use crate::time::ledger::{Ledger, ledger};
use crate::time::recording_times::RecordingTimes;
use crate::time::time_spent::{self as analysis, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, Quantity, Unavailable};
use std::collections::HashMap;

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// A launch from storage.
    Cold,
    /// A launch with everything in memory.
    Warm,
    /// Processes that ran already.
    Running,
}

/// Where the time of one recording went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSpent {
    /// What was recorded.
    pub condition: Condition,
    /// From the release of exec to ready, of the recorded launch; null for what ran already. `to_ready` of the rows and
    /// `unexplained` add up to it.
    pub time_to_ready: Option<Quantity>,
    /// Time on the CPU in all its processes. `cpu` of the rows add up to it.
    pub cpu: Quantity,
    /// The part of `cpu` in which faults and their call stacks were recorded. It is in the rows: in `program`, and in `child_start`. Null
    /// where it was not measured.
    #[serde(default)]
    pub recording: Option<Quantity>,
    /// Every part.
    pub rows: Vec<TimeSpentRow>,
    /// Time before ready of which nothing was recorded.
    pub unexplained: Option<Quantity>,
    /// Threads whose CPU time is not known; it is missing in `cpu`.
    pub uncounted_threads: u64,
    /// Whether memory calls were recorded; if not, they are part of `program`.
    pub has_memory_calls: bool,
}

/// Time of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSpentRow {
    /// The part.
    pub part: Part,
    /// The part as a reader reads it.
    pub title: String,
    /// Its time on the critical path to ready; null for what ran already.
    pub to_ready: Option<Quantity>,
    /// Its time on the CPU; null for waits.
    pub cpu: Option<Quantity>,
}

/// Of a recording; `None` for a launch that never got ready, or whose path is not known. Where that is because something could
/// not be recorded, `unavailable` says so.
pub fn of_tables(tables: &Tables, condition: Condition, unavailable: &mut Vec<Unavailable>) -> Option<TimeSpent> {
    let ledger = ledger(tables).unwrap_or_else(|gap| {
        unavailable.push(gap);
        None
    })?;
    let found = match condition {
        Condition::Cold | Condition::Warm => analysis::of_launch(tables, &ledger)?,
        Condition::Running => analysis::of_running(&ledger),
    };
    let rows = found.parts.iter().map(|part| TimeSpentRow {
        part: part.part,
        title: part.part.words().to_owned(),
        to_ready: part.to_ready.map(milliseconds),
        cpu: part.cpu.map(milliseconds),
    });
    Some(TimeSpent {
        condition,
        time_to_ready: found.launch.map(|launch| milliseconds(launch.time)),
        cpu: milliseconds(found.cpu),
        recording: recording(tables, &ledger).map(milliseconds),
        rows: rows.collect(),
        unexplained: found.launch.map(|launch| milliseconds(launch.unexplained)),
        uncounted_threads: found.uncounted_threads,
        has_memory_calls: ledger.has_memory_calls,
    })
}

/// What recording faults took of the threads whose CPU time is known; `None` where no fault says it.
fn recording(tables: &Tables, ledger: &Ledger) -> Option<Nanos> {
    let of_threads: HashMap<_, _> = RecordingTimes::new(tables).totals().collect();
    let counted = ledger.threads.iter().filter(|thread| thread.on_cpu.is_some());
    let sum = counted.filter_map(|thread| of_threads.get(&(thread.process, thread.tid)).copied()).sum();
    (!of_threads.is_empty()).then_some(sum)
}
