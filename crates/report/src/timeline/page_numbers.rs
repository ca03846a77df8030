//! Which number of the page a thread or a process of the recording has.
//!
//! Owns the order of the processes. Leaves where times begin to [`super::page_clock`], and which threads a page has, and in which order,
//! to [`super::of_tables`].

use super::page_clock::{since, zero_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineProcess {
    /// Base name of the program it ran last. Foreign text.
    pub name: String,
    /// Pid.
    pub pid: u32,
    /// Start of the process, `CLOCK_MONOTONIC`, ns: distinguishes processes that had one pid.
    pub start: Nanos,
    /// Who forked it, as an index into `processes`; null where that is not here.
    pub parent: Option<u32>,
    /// When it was made or first seen.
    pub began_ns: i64,
}

/// From the recording's threads and processes to their numbers in the page.
pub(super) struct PageNumbers {
    /// By number of the recording.
    pub(super) thread: Vec<Option<u32>>,
    process: BTreeMap<ProcessKey, u32>,
    pub(super) zero: Nanos,
}

impl PageNumbers {
    pub(super) fn new(tables: &Tables, threads: usize) -> Self {
        Self { thread: vec![None; threads], process: BTreeMap::new(), zero: zero_of(tables) }
    }

    /// Numbers the processes: in the order of their begin, a child below its parent.
    pub(super) fn processes(
        &mut self,
        of: impl Iterator<Item = ProcessKey>,
        known: &Processes,
    ) -> Vec<TimelineProcess> {
        let wanted: BTreeSet<ProcessKey> = of.collect();
        let began = |key: &ProcessKey| known.get(*key).map_or(key.start, |process| process.began);
        let parent =
            |key: &ProcessKey| known.get(*key)?.parent.filter(|parent| wanted.contains(parent) && parent != key);
        let mut children: BTreeMap<Option<ProcessKey>, Vec<ProcessKey>> = BTreeMap::new();
        wanted.iter().for_each(|key| children.entry(parent(key)).or_default().push(*key));
        children.values_mut().for_each(|all| all.sort_by_key(|key| (Reverse(began(key)), Reverse(*key))));
        let mut next = children.remove(&None).unwrap_or_default();
        let mut order = Vec::with_capacity(wanted.len());
        while let Some(key) = next.pop() {
            order.push(key);
            next.extend(children.remove(&Some(key)).unwrap_or_default());
        }
        // What rows claim of each other in a circle has no first.
        order.extend(children.into_values().flatten());
        self.process = (0u32..).zip(&order).map(|(number, key)| (*key, number)).collect();
        let shown = |key: &ProcessKey| TimelineProcess {
            name: known.name(*key),
            pid: key.pid,
            start: key.start,
            parent: parent(key).and_then(|parent| self.process(parent)),
            began_ns: self.since_zero(began(key)),
        };
        order.iter().map(shown).collect()
    }

    pub(super) fn process(&self, key: ProcessKey) -> Option<u32> {
        self.process.get(&key).copied()
    }

    pub(super) fn thread(&self, number: Option<u32>) -> Option<u32> {
        *self.thread.get(number? as usize)?
    }

    pub(super) fn since_zero(&self, at: Nanos) -> i64 {
        since(self.zero, at)
    }
}
