//! The timeline of the page: what every thread did at every moment, who woke whom, what the devices did, milestones, and the critical
//! path to ready.
//!
//! Owns how much is kept, and leaves the columns to the files below it: the timeline stays below some 15 MB whatever was recorded, and
//! says what is left out. What a thread did is the walk of the ledger, so the states of a thread add up to its ledger: the state `running` holds user, kernel and
//! stolen time and what is unexplained, which have no place on a clock. Leaves drawing to `report-ui`.

mod devices;
mod milestones;
mod page_clock;
mod page_numbers;
mod path;
mod spans;
mod states;
#[cfg(test)]
mod tests;
mod wakes;

pub use devices::TimelineDevice;
pub use milestones::{Milestone, MilestoneKind};
pub(crate) use page_clock::{since, zero_of};
pub use page_numbers::TimelineProcess;
pub use path::TimelinePath;
pub use spans::SpanColumns;
pub use wakes::WakeColumns;

use page_numbers::PageNumbers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_analysis::time::ledger::{ThreadStates, TimelineThread};
use slowpath_recording::Tables;
use slowpath_tables::Nanos;
use spans::{Lengths, Spans, fold};
use states::{busy, state_names, state_of};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Spans of the page, of threads and devices together: 5 bytes each and some 30 ms for the page to read.
const MOST_SPANS: u64 = 1_500_000;
/// Threads of the page, the busiest of them.
const MOST_THREADS: usize = 4_000;

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
    let mut numbers = PageNumbers::new(tables, threads.len());
    let processes = numbers.processes(shown.iter().map(|number| threads[*number].process), &known);
    shown.sort_by_key(|number| {
        let TimelineThread { process, tid, began, .. } = threads[*number];
        (numbers.process(process), tid != process.pid, began, tid)
    });
    for (line, number) in (0u32..).zip(&shown) {
        numbers.thread[*number] = Some(line);
    }
    let finest_ns = lengths.finest(most_spans);
    let mut of_line: Vec<Vec<(u8, u64)>> = vec![Vec::new(); shown.len()];
    found.each(|number, from, to, category| {
        if let Some(line) = numbers.thread[number as usize] {
            fold(&mut of_line[line as usize], state_of(category, found.has_waits), (to - from).0, finest_ns);
        }
    });
    let line = |(number, spans): (&usize, &Vec<(u8, u64)>)| {
        let thread = &threads[*number];
        let times = names.iter().zip(&times[*number]).filter(|(_, time)| **time > 0);
        TimelineLine {
            process: numbers.process(thread.process).unwrap_or_default(),
            tid: thread.tid,
            name: thread.name.map(str::to_owned),
            began_ns: numbers.since_zero(thread.began),
            spans: spans.len() as u64,
            times: times.map(|(name, time)| (name.clone(), *time)).collect(),
        }
    };
    let lines = shown.iter().zip(&of_line).map(line).collect();
    let mut spans = Spans::default();
    of_line.iter().flatten().for_each(|(state, length)| spans.push(*state, *length));
    let devices = devices::of_tables(tables, &numbers, &mut spans);
    Some(PageTimeline {
        zero: numbers.zero,
        has_waits: found.has_waits,
        states: names,
        finest_ns,
        processes,
        threads: lines,
        devices,
        spans: spans.columns(),
        wakes: wakes::of_tables(tables, &found, &numbers),
        milestones: milestones::of_tables(tables, &known, &numbers),
        path: path::of_tables(tables, &found, &numbers),
        other_threads,
        incomplete_threads: found.incomplete(),
    })
}
