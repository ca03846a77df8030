//! Moments of a launch that have a name.

use super::page_numbers::PageNumbers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_recording::Tables;
use slowpath_tables::ProcessKey;

/// Milestones of a page, the first of them: a build has tens of thousands of execs.
const MOST: usize = 2_000;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MilestoneKind {
    /// The recorded command was let go.
    Released,
    /// A process was made by another one.
    Made,
    /// A program image began to run.
    Exec,
    /// The main thread of a process waited for the first time for something to happen: its start was over.
    FirstWait,
    /// The launch was ready.
    Ready,
    /// The last thread of a process ended.
    Ended,
}

/// A moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Milestone {
    /// When, ns since `zero`.
    pub at_ns: i64,
    /// What.
    pub kind: MilestoneKind,
    /// Of which process, as an index into `processes`; null for the launch as a whole.
    pub process: Option<u32>,
    /// Of `exec` the program, of `ready` what counted as it; else empty. Foreign text.
    pub text: String,
}

pub(super) fn of_tables(tables: &Tables, known: &Processes, numbers: &PageNumbers) -> Vec<Milestone> {
    let mut all: Vec<Milestone> = Vec::new();
    let mut add = |at, kind, process: Option<ProcessKey>, text: &str| {
        let process = match process {
            None => None,
            // Of a process that is not drawn nothing is.
            Some(key) => match numbers.process(key) {
                None => return,
                number => number,
            },
        };
        all.push(Milestone { at_ns: numbers.since_zero(at), kind, process, text: text.to_owned() });
    };
    if let Some(launch) = &tables.manifest.launch {
        add(launch.released, MilestoneKind::Released, None, "");
        if let Some(ready) = launch.ready {
            add(ready, MilestoneKind::Ready, None, &launch.ready_when);
        }
    }
    for row in tables.forks.iter().filter(|row| !row.thread) {
        add(row.ts, MilestoneKind::Made, Some(row.process()), "");
    }
    for row in tables.execs.iter().filter(|row| !row.present) {
        add(row.ts, MilestoneKind::Exec, Some(row.process()), &row.filename);
    }
    for row in &tables.first_waits {
        add(row.ts, MilestoneKind::FirstWait, Some(row.process()), "");
    }
    for process in known.iter() {
        if let Some(ended) = process.ended {
            add(ended, MilestoneKind::Ended, Some(process.key), "");
        }
    }
    // Those of the launch stay, whatever is left out.
    all.sort_by_key(|one| (one.process.is_some(), one.at_ns, one.kind));
    all.truncate(MOST);
    all.sort_by_key(|one| (one.at_ns, one.kind, one.process));
    all
}
