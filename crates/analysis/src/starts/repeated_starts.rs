//! Work that several children of one program do alike when they start.
//!
//! Owns how that is recognised: by the files that they open, one after the other. A *step* is the time of a thread from one open to the
//! next; the first of a main thread begins with the process. Children that make the same step, from the same file to the same file, do
//! the same there: they read, relocate and initialise the same. A step counts
//!
//! - where at least [`LEAST_SIBLINGS`] children of the same program make it, that executed it or that are all copies of one that did;
//! - once a child: what it opens again later is no start;
//! - until its thread waits for events or for data, runs another program, or ends. What comes behind its last open is never counted: there
//!   are no two opens between which it would be the same.
//!
//! What one child takes for a step is taken from the middle of all that make it, so that one that was slow, or did something of its own
//! in between, counts no more than the others. Children that were given different command lines, and copies, of which it is not known what
//! they were given, can do work of their own between two files that all open (a log, a time zone). So a step of theirs that takes longer
//! than [`LONGEST`] is [`Start::doubtful`], unless it is spent on page faults mostly, or on pages of files, as a relocation is. What
//! recording these faults took of a child is not counted: with the call stacks of deep code it can be half of all.
//!
//! Leaves what that costs, and whether it matters, to the finding `repeated_child_work`.

use crate::interval::median;
use crate::io::opening_threads::{OpeningThread, OpeningThreads, Taken};
use crate::launch_facts::{FaultPlace, LaunchFacts};
use crate::starts::children::Origin;
use slowpath_tables::{FileKey, Nanos, ProcessKey};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Children from which on the same step is work that is repeated. Two of a kind are a pipeline, or a helper beside a worker.
pub(crate) const LEAST_SIBLINGS: usize = 3;

/// What children that were given different work do between two opens in no more time is their start. Of the 155 steps of a Python that
/// imports eight larger modules of its library (`cases/children`), two take longer on a busy machine: 13 of 128 ms.
pub(crate) const LONGEST: Nanos = Nanos(5_000_000);

/// A step with a fault for a page of a file in every so much CPU time is spent on these pages. The dynamic loader takes 13 us to relocate
/// one of Chromium's (3,542 pages in 46 ms, on a busy machine); a page holds at most 512 pointers.
const A_FILE_PAGE: Nanos = Nanos(50_000);

/// The start of one child, as far as others start like it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Start {
    /// Which child.
    pub process: ProcessKey,
    /// When it was forked, or ran its last program where it ran several.
    pub began: Nanos,
    /// End of its last step that others make too.
    pub until: Nanos,
    /// Such steps.
    pub steps: usize,
    /// What these steps take a child in the middle of those that make them, ns.
    pub typical: f64,
    /// What of that ends before this child starts a thread: a process that has several threads cannot hand on its work by a fork.
    pub single_threaded: f64,
    /// What they take the fastest of them.
    pub least: f64,
    /// What they took this one.
    pub own: f64,
    /// What further steps took it that can be work of its own.
    pub doubtful: f64,
}

/// A step that several children make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RepeatedStep<'a> {
    /// The open that it begins with; `None` for the begin of the process.
    pub after: Option<&'a str>,
    /// The open that it ends with.
    pub until: &'a str,
    /// How many make it.
    pub children: usize,
    /// What it takes one of them, ns.
    pub typical: f64,
    /// Whether it can be work of each child's own.
    pub is_doubtful: bool,
}

/// Children of one program, of which each does what at least [`LEAST_SIBLINGS`] of them do.
#[derive(Clone, Debug)]
pub(crate) struct Siblings<'a> {
    /// The program that they run.
    pub program: FileKey,
    /// How they began.
    pub origin: Origin,
    /// How many command lines they have; copies have that of the program that they are a copy of.
    pub command_lines: usize,
    /// In the order of their processes.
    pub starts: Vec<Start>,
    /// Most costly first, all children together.
    pub steps: Vec<RepeatedStep<'a>>,
}

/// A step, and which children make it in which time.
type Steps<'a> = BTreeMap<(Option<&'a str>, &'a str), Vec<Made>>;

#[derive(Clone, Copy)]
struct Made {
    process: ProcessKey,
    until: Nanos,
    cpu: f64,
    faults: Faults,
}

/// Page faults of a thread.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// Time in them, ns.
    time: f64,
    /// How many of them were for pages of files.
    of_files: f64,
}

/// All that start alike in one launch.
pub(crate) fn siblings<'a>(facts: &'a LaunchFacts<'_>) -> Vec<Siblings<'a>> {
    let tables = &*facts.tables;
    if tables.opens.is_empty() {
        return Vec::new();
    }
    let threads = OpeningThreads::new(tables, facts.recording(), facts.ended);
    let executables = facts.processes.executables(&tables.execs);
    let faults = ThreadFaults::new(facts);
    let mut groups: BTreeMap<(FileKey, Origin), (HashMap<ProcessKey, Nanos>, Steps<'a>)> = BTreeMap::new();
    let mut made: HashSet<(ProcessKey, Option<&str>, &str)> = HashSet::new();
    for (number, thread) in threads.threads.iter().enumerate() {
        let Some((began, origin)) = beginning(facts, &threads, thread) else { continue };
        let runs = threads.execs(thread.process).last().copied().unwrap_or(began).max(began);
        let Some(program) = executables.get(&thread.process) else { continue };
        let (begins, steps) = groups.entry((*program, origin)).or_default();
        begins.insert(thread.process, began);
        for step in of_thread(thread, began, threads.first_order(thread, runs)) {
            if made.insert((thread.process, step.after, step.until)) {
                let Taken { cpu, .. } = threads.taken(number, step.from, step.to);
                let faults = faults.between((thread.process, thread.tid), step.from, step.to);
                let one = Made { process: thread.process, until: step.to, cpu, faults };
                steps.entry((step.after, step.until)).or_default().push(one);
            }
        }
    }
    let groups = groups.into_iter().map(|(group, (begins, steps))| of_group(facts, group, &begins, steps));
    groups.filter(|group| group.starts.len() >= LEAST_SIBLINGS).collect()
}

/// When a child began what it is, and how; `None` for the launch's own process and those that were there before.
fn beginning(
    facts: &LaunchFacts<'_>,
    threads: &OpeningThreads<'_>,
    thread: &OpeningThread<'_>,
) -> Option<(Nanos, Origin)> {
    let process = facts.processes.get(thread.process)?;
    if facts.processes.main() == Some(thread.process) || process.parent.is_none() {
        return None;
    }
    Some(match threads.execs(thread.process) {
        [] => (process.began, Origin::Forked),
        [one] => (process.began.min(*one), Origin::Executed),
        [.., last] => (*last, Origin::Executed),
    })
}

struct Step<'a> {
    after: Option<&'a str>,
    until: &'a str,
    from: Nanos,
    to: Nanos,
}

/// The steps of a thread, from the last program of its process on.
fn of_thread<'a>(thread: &OpeningThread<'a>, began: Nanos, limit: Nanos) -> Vec<Step<'a>> {
    let is_main = thread.tid == thread.process.pid;
    let mut before = is_main.then_some((None, began));
    let mut steps = Vec::new();
    let opens = thread.opens.iter().skip_while(|open| open.ts < began).take_while(|open| open.ts < limit);
    for open in opens.filter(|open| open.call.is_none() && !open.path.is_empty()) {
        if let Some((after, from)) = before {
            steps.push(Step { after, until: &open.path, from, to: open.ts });
        }
        before = Some((Some(open.path.as_str()), open.ts));
    }
    steps
}

/// When threads took page faults, and all until then.
struct ThreadFaults(HashMap<(ProcessKey, u32), Vec<(Nanos, Faults)>>);

impl ThreadFaults {
    fn new(facts: &LaunchFacts<'_>) -> Self {
        let mut faults: HashMap<(ProcessKey, u32), Vec<(Nanos, Faults)>> = HashMap::new();
        for (fault, place) in facts.tables.faults.iter().zip(&facts.places) {
            let of_thread = faults.entry((fault.process(), fault.tid)).or_default();
            let mut until = of_thread.last().map_or_else(Faults::default, |last| last.1);
            until.time += fault.duration.unwrap_or_default().0 as f64;
            until.of_files += f64::from(u8::from(matches!(place, FaultPlace::File { .. })));
            of_thread.push((fault.ts, until));
        }
        Self(faults)
    }

    fn between(&self, thread: (ProcessKey, u32), from: Nanos, to: Nanos) -> Faults {
        let Some(faults) = self.0.get(&thread) else { return Faults::default() };
        let until = |moment: Nanos| {
            let count = faults.partition_point(|(ts, _)| *ts <= moment);
            count.checked_sub(1).map_or_else(Faults::default, |last| faults[last].1)
        };
        let (before, after) = (until(from), until(to));
        Faults { time: after.time - before.time, of_files: after.of_files - before.of_files }
    }
}

/// When each of these processes, as what it is now, started its first thread; those that did are in it. An exec ends all threads but one.
fn first_threads(facts: &LaunchFacts<'_>, begins: &HashMap<ProcessKey, Nanos>) -> HashMap<ProcessKey, Nanos> {
    let mut first: HashMap<ProcessKey, Nanos> = HashMap::new();
    for row in facts.tables.forks.iter().filter(|row| row.thread) {
        if begins.get(&row.process()).is_some_and(|began| *began <= row.ts) {
            let at = first.entry(row.process()).or_insert(row.ts);
            *at = row.ts.min(*at);
        }
    }
    first
}

fn of_group<'a>(
    facts: &LaunchFacts<'_>,
    (program, origin): (FileKey, Origin),
    begins: &HashMap<ProcessKey, Nanos>,
    steps: Steps<'a>,
) -> Siblings<'a> {
    let line = |process: &ProcessKey| facts.processes.get(*process).map(|process| process.command_line.as_str());
    let command_lines = begins.keys().map(line).collect::<HashSet<_>>().len();
    let are_given_the_same = origin == Origin::Executed && command_lines <= 1;
    let first_threads = first_threads(facts, begins);
    let mut starts: BTreeMap<ProcessKey, Start> = BTreeMap::new();
    let mut repeated: Vec<RepeatedStep<'a>> = Vec::new();
    for ((after, until), made) in steps {
        if made.len() < LEAST_SIBLINGS {
            continue;
        }
        let times: Vec<f64> = made.iter().map(|one| one.cpu).collect();
        let typical = median(&times).unwrap_or_default();
        let least = times.iter().copied().fold(typical, f64::min);
        let middle = |of: fn(&Made) -> f64| median(&made.iter().map(of).collect::<Vec<f64>>()).unwrap_or_default();
        let is_paging = middle(|one| one.faults.time) * 2.0 >= typical
            || middle(|one| one.faults.of_files) * A_FILE_PAGE.0 as f64 >= typical;
        let is_doubtful = !are_given_the_same && typical > LONGEST.0 as f64 && !is_paging;
        for one in &made {
            let began = begins.get(&one.process).copied().unwrap_or_default();
            let start = starts.entry(one.process).or_insert(Start {
                process: one.process,
                began,
                until: began,
                steps: 0,
                typical: 0.0,
                single_threaded: 0.0,
                least: 0.0,
                own: 0.0,
                doubtful: 0.0,
            });
            if is_doubtful {
                start.doubtful += one.cpu;
                continue;
            }
            start.steps += 1;
            start.until = start.until.max(one.until);
            start.typical += typical;
            if first_threads.get(&one.process).is_none_or(|first| one.until <= *first) {
                start.single_threaded += typical;
            }
            start.least += least;
            start.own += one.cpu;
        }
        repeated.push(RepeatedStep { after, until, children: made.len(), typical, is_doubtful });
    }
    let all = |step: &RepeatedStep<'_>| step.typical * step.children as f64;
    repeated.sort_by(|a, b| all(b).total_cmp(&all(a)).then_with(|| (a.after, a.until).cmp(&(b.after, b.until))));
    starts.retain(|_, start| start.steps > 0);
    Siblings { program, origin, command_lines, starts: starts.into_values().collect(), steps: repeated }
}

#[cfg(test)]
mod tests;
