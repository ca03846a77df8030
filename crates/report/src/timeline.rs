//! The timeline of the page: what every thread did at every moment, who woke whom, what the devices did, milestones, and the critical
//! path to ready.
//!
//! Owns the columns and how much is kept: the timeline stays below some 15 MB whatever was recorded, and says what is left out. What a
//! thread did is the walk of the ledger, so the states of a thread add up to its ledger: the state `running` holds user, kernel and
//! stolen time and what is unexplained, which have no place on a clock. Leaves drawing to `report-ui`.

mod devices;
mod milestones;
mod path;
#[cfg(test)]
mod tests;
mod wakes;

pub use devices::TimelineDevice;
pub use milestones::{Milestone, MilestoneKind};
pub use path::TimelinePath;
pub use wakes::WakeColumns;

use crate::columns::{Numbers, base64};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_analysis::time::ledger::{Category, ThreadStates, TimelineThread};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Spans of the page, of threads and devices together: 5 bytes each and some 30 ms for the page to read.
const MOST_SPANS: u64 = 1_500_000;
/// Threads of the page, the busiest of them.
const MOST_THREADS: usize = 4_000;

/// The states of threads and devices. A span names one by its place in this list.
const OWN_STATES: [&str; 7] =
    ["running", "not_recorded", "several", "idle", "reading", "writing", "reading_and_writing"];
const RUNNING: u8 = 0;
const NOT_RECORDED: u8 = 1;
const SEVERAL: u8 = 2;

fn state_of(category: Option<Category>, has_waits: bool) -> u8 {
    match category {
        Some(category) => OWN_STATES.len() as u8 + category as u8,
        None if has_waits => RUNNING,
        None => NOT_RECORDED,
    }
}

/// The names of all states: those of the timeline, then the ledger's categories.
fn state_names() -> Vec<String> {
    let category = |category: &Category| match serde_json::to_value(category) {
        Ok(serde_json::Value::String(name)) => name,
        _ => category.words().to_owned(),
    };
    OWN_STATES.iter().map(|name| (*name).to_owned()).chain(Category::ALL.iter().map(category)).collect()
}

/// The timeline of a page. Times are ns since `zero`; what began before it has negative ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageTimeline {
    /// When exec was released, or recording began where nothing was launched, `CLOCK_MONOTONIC`, ns.
    pub zero: Nanos,
    /// Whether it was recorded when threads do not run; if not, only faults and memory calls are known, and the rest is the state
    /// `not_recorded`.
    pub has_waits: bool,
    /// Names of states: `running` (user, kernel and stolen time and what is unexplained), `not_recorded`, `several` (short spans of
    /// different states together), those of devices, then the ledger's categories. Spans name them by index.
    pub states: Vec<String>,
    /// Spans shorter than this are in one of the state `several`, ns; 0 where every span is kept.
    pub finest_ns: u64,
    /// Processes that have a thread here, parents before their children.
    pub processes: Vec<TimelineProcess>,
    /// Threads, those of a process together, in the order of `processes`.
    pub threads: Vec<TimelineLine>,
    /// Block devices; their spans follow those of the threads.
    pub devices: Vec<TimelineDevice>,
    /// What each of them did.
    pub spans: SpanColumns,
    /// Who ended whose wait.
    pub wakes: WakeColumns,
    /// Moments with a name, in order.
    pub milestones: Vec<Milestone>,
    /// What the end of the launch waited for, back to its begin; null where that is not known.
    pub path: Option<TimelinePath>,
    /// Threads that are less busy than those here and left out.
    pub other_threads: u64,
    /// Threads of which begin or end was not recorded; they are left out.
    pub incomplete_threads: u64,
}

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

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineLine {
    /// Index into `processes`.
    pub process: u32,
    /// Thread id.
    pub tid: u32,
    /// Its last known name; null where it is not known. Foreign text.
    pub name: Option<String>,
    /// When it began, or began to be followed.
    pub began_ns: i64,
    /// How many of `spans` are its; they follow each other from its begin to its end.
    pub spans: u64,
    /// Time by state, ns, of the states that have any: of all spans, also of those that `several` hides.
    pub times: BTreeMap<String, u64>,
}

/// Spans, those of the first thread first; a span begins where the one before it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpanColumns {
    /// How many.
    pub count: u64,
    /// Index into the names of states, a byte each, in base64.
    pub states: String,
    /// Length in ns, as LEB128 in base64.
    pub lengths: String,
}

/// How many spans have how many bits of length, and so how short the shortest can be for the page to have room.
struct Lengths {
    by_bits: [u64; 65],
}

impl Default for Lengths {
    fn default() -> Self {
        Self { by_bits: [0; 65] }
    }
}

impl Lengths {
    fn see(&mut self, length: u64) {
        self.by_bits[(u64::BITS - length.leading_zeros()) as usize] += 1;
    }

    /// The least length with which no more than `most` spans are kept, besides one a thread: between two long ones there is at most
    /// one of those folded.
    fn finest(&self, most: u64) -> u64 {
        let mut kept: u64 = self.by_bits.iter().sum();
        if kept <= most {
            return 0;
        }
        for (bits, count) in self.by_bits.iter().enumerate() {
            kept -= count;
            if kept.saturating_mul(2) <= most {
                return 1u64.checked_shl(bits as u32).unwrap_or(u64::MAX);
            }
        }
        u64::MAX
    }
}

/// Spans in the making.
#[derive(Default)]
struct Spans {
    states: Vec<u8>,
    lengths: Numbers,
}

impl Spans {
    fn push(&mut self, state: u8, length: u64) {
        self.states.push(state);
        self.lengths.push(length);
    }

    fn columns(self) -> SpanColumns {
        SpanColumns { count: self.states.len() as u64, states: base64(&self.states), lengths: self.lengths.text() }
    }
}

/// Where things are: numbers of the recording's threads and processes to those of the page.
struct Places {
    /// By number of the recording.
    thread: Vec<Option<u32>>,
    process: BTreeMap<ProcessKey, u32>,
    zero: Nanos,
}

impl Places {
    fn new(tables: &Tables, threads: usize) -> Self {
        Self { thread: vec![None; threads], process: BTreeMap::new(), zero: zero_of(tables) }
    }

    /// Numbers the processes: in the order of their begin, a child below its parent.
    fn processes(&mut self, of: impl Iterator<Item = ProcessKey>, known: &Processes) -> Vec<TimelineProcess> {
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

    fn process(&self, key: ProcessKey) -> Option<u32> {
        self.process.get(&key).copied()
    }

    fn thread(&self, number: Option<u32>) -> Option<u32> {
        *self.thread.get(number? as usize)?
    }

    fn since_zero(&self, at: Nanos) -> i64 {
        since(self.zero, at)
    }
}

/// Where the times of a page begin: when exec was released, or recording began where nothing was launched.
pub(crate) fn zero_of(tables: &Tables) -> Nanos {
    tables.manifest.launch.as_ref().map_or(tables.manifest.started, |launch| launch.released)
}

/// From `zero` to `at`, ns.
pub(crate) fn since(zero: Nanos, at: Nanos) -> i64 {
    let apart = i64::try_from(at.0.abs_diff(zero.0)).unwrap_or(i64::MAX);
    if at < zero { -apart } else { apart }
}

/// The timeline of a recording; `None` where of no thread both begin and end are known.
pub fn of_tables(tables: &Tables) -> Option<PageTimeline> {
    of(tables, MOST_SPANS, MOST_THREADS)
}

fn of(tables: &Tables, most_spans: u64, most_threads: usize) -> Option<PageTimeline> {
    let found = ThreadStates::new(tables);
    let threads: Vec<TimelineThread<'_>> = found.threads().collect();
    if threads.is_empty() {
        return None;
    }
    let names = state_names();
    let mut times = vec![vec![0u64; names.len()]; threads.len()];
    let mut lengths = Lengths::default();
    found.each(|number, from, to, category| {
        let length = (to - from).0;
        times[number as usize][usize::from(state_of(category, found.has_waits))] += length;
        lengths.see(length);
    });
    let mut shown: Vec<usize> = (0..threads.len()).collect();
    shown.sort_by_key(|number| (Reverse(busy(&times[*number])), *number));
    let other_threads = shown.split_off(shown.len().min(most_threads)).len() as u64;
    let known = Processes::new(&tables.forks, &tables.execs, &tables.exits);
    let mut places = Places::new(tables, threads.len());
    let processes = places.processes(shown.iter().map(|number| threads[*number].process), &known);
    shown.sort_by_key(|number| {
        let TimelineThread { process, tid, began, .. } = threads[*number];
        (places.process(process), tid != process.pid, began, tid)
    });
    for (line, number) in (0u32..).zip(&shown) {
        places.thread[*number] = Some(line);
    }
    let finest_ns = lengths.finest(most_spans);
    let mut of_line: Vec<Vec<(u8, u64)>> = vec![Vec::new(); shown.len()];
    found.each(|number, from, to, category| {
        if let Some(line) = places.thread[number as usize] {
            fold(&mut of_line[line as usize], state_of(category, found.has_waits), (to - from).0, finest_ns);
        }
    });
    let line = |(number, spans): (&usize, &Vec<(u8, u64)>)| {
        let thread = &threads[*number];
        let times = names.iter().zip(&times[*number]).filter(|(_, time)| **time > 0);
        TimelineLine {
            process: places.process(thread.process).unwrap_or_default(),
            tid: thread.tid,
            name: thread.name.map(str::to_owned),
            began_ns: places.since_zero(thread.began),
            spans: spans.len() as u64,
            times: times.map(|(name, time)| (name.clone(), *time)).collect(),
        }
    };
    let lines = shown.iter().zip(&of_line).map(line).collect();
    let mut spans = Spans::default();
    of_line.iter().flatten().for_each(|(state, length)| spans.push(*state, *length));
    let devices = devices::of_tables(tables, &places, &mut spans);
    Some(PageTimeline {
        zero: places.zero,
        has_waits: found.has_waits,
        states: names,
        finest_ns,
        processes,
        threads: lines,
        devices,
        spans: spans.columns(),
        wakes: wakes::of_tables(tables, &found, &places),
        milestones: milestones::of_tables(tables, &known, &places),
        path: path::of_tables(tables, &found, &places),
        other_threads,
        incomplete_threads: found.incomplete(),
    })
}

/// Time in which a thread did something, or the machine kept it from doing it.
fn busy(times: &[u64]) -> u64 {
    let is_idle = |state: usize| {
        let category = state.checked_sub(OWN_STATES.len()).and_then(|at| Category::ALL.get(at));
        category.is_some_and(|category| category.is_idle())
    };
    times.iter().enumerate().filter(|(state, _)| !is_idle(*state)).map(|(_, time)| *time).sum()
}

/// Adds a span to those of a thread. Short ones that follow each other become one.
fn fold(spans: &mut Vec<(u8, u64)>, state: u8, length: u64, finest: u64) {
    match spans.last_mut() {
        // What is short or folded already, and short again: such runs are bounded by spans that are kept.
        Some((last, sum)) if length < finest && (*last == SEVERAL || *sum < finest) => {
            *last = SEVERAL;
            *sum = sum.saturating_add(length);
        }
        _ => spans.push((state, length)),
    }
}
