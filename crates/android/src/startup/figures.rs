//! The figures of a launch: of the threads of its processes, what began between its intent and its first frame.

use super::event::{Events, Waiting};
use super::launches::{Launch, processes};
use super::phases::{MILESTONES, PhaseSums, VERIFY, is_gc, library, opened_code};
use super::printed::{
    BinderWaits, BusyProcess, LongCall, Milestone, OpenedCode, ProcessStart, Startup, ThreadTimes, VerifiedClass,
};
use super::timeline::{Process, Slice, State, Thread, Timeline};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A call over binder that is shown by itself, ns: as Perfetto's metric.
const LONG_CALL: u64 = 20_000_000;
/// Rows of each list.
const MOST_LONG: usize = 64;
const MOST_SHOWN: usize = 5;
const MOST_LIBRARIES: usize = 256;

const JIT: &str = "Jit thread pool";
const START_PROCESS: &str = "Start proc: ";

/// The figures of one launch.
pub fn startup(launch: &Launch, timeline: &Timeline, events: &Events) -> Startup {
    let names = &events.names;
    let hosts = processes(launch, timeline, events);
    let own: Vec<&Process> = hosts.iter().map(|(process, _)| *process).collect();
    let range = launch.range;
    let after = |ts: u64| ts.saturating_sub(range.0);
    let mut gathered = Gathered::default();
    let (mut main_thread, mut to_running, mut fully_drawn) = (ThreadTimes::default(), None, None::<u64>);
    for process in &own {
        for thread in process.threads.iter().filter_map(|at| timeline.threads.get(*at)) {
            let is_main = thread.tid == process.pid;
            gathered.thread(thread, is_main, range, events);
            if is_main {
                main_thread.add(thread, range);
            }
            let mut running = thread.states.iter().filter(|span| span.state == State::Running);
            if let Some(first) = running.find(|span| span.to > range.0 && span.from < range.1) {
                to_running = Some(to_running.map_or(first.from, |before: u64| before.min(first.from)));
            }
            let mut drawn = thread.slices.iter().filter(|one| one.ts >= range.0);
            if let Some(one) = drawn.find(|one| names.text(one.name).starts_with("reportFullyDrawn")) {
                fully_drawn = Some(fully_drawn.map_or(one.ts, |before| before.min(one.ts)));
            }
        }
    }
    let made = |process: &&Process| {
        process.made.is_some_and(|(ts, _)| (range.0..=range.1).contains(&ts)) && !has(&own, process)
    };
    let mains: Vec<&Thread> = own.iter().filter_map(|process| timeline.main_thread(process)).collect();
    Startup {
        package: launch.package.clone(),
        process: own.first().map(|process| process.name.clone()),
        pid: own.first().map(|process| process.pid),
        kind: launch.kind.or_else(|| hosts.iter().map(|(_, kind)| *kind).max()),
        intent_received: range.0,
        first_frame: range.1,
        duration_ns: after(range.1),
        activity_manager_ns: launch.manager.map(after),
        fully_drawn_ns: fully_drawn.map(after),
        process_start: asked_for(launch, timeline, events)
            .map(|one| ProcessStart { before_ns: after(one.ts), duration_ns: one.duration() }),
        hosting_processes: u32::try_from(own.len()).unwrap_or(u32::MAX),
        other_processes_made: u32::try_from(timeline.processes.iter().filter(made).count()).unwrap_or(u32::MAX),
        main_thread,
        to_running_ns: to_running.filter(|ts| *ts > range.0).map(after),
        milestones: milestones(&mains, range, events),
        phases: gathered.phases.finish(),
        gc_cpu_ns: gathered.gc_cpu,
        jit_cpu_ns: gathered.jit_cpu,
        jit_methods: gathered.jit_methods,
        binder: binder(&own, timeline, range),
        verified_classes: gathered.longest_classes(),
        code: gathered.code(),
        libraries: gathered.libraries,
        busy_others: busy_others(&own, timeline, range),
    }
}

fn has(own: &[&Process], process: &Process) -> bool {
    own.iter().any(|one| std::ptr::eq(*one, process))
}

impl ThreadTimes {
    /// Adds what a thread did in a range.
    pub fn add(&mut self, thread: &Thread, range: (u64, u64)) {
        for span in &thread.states {
            let time = span.within(range);
            let sum = match span.state {
                State::Running => &mut self.running_ns,
                State::Off(Waiting::Runnable, _) => &mut self.runnable_ns,
                State::Off(Waiting::Interruptible, _) => &mut self.interruptible_ns,
                State::Off(Waiting::Uninterruptible, _) => &mut self.uninterruptible_ns,
                State::Off(Waiting::Other, _) => continue,
            };
            *sum = sum.saturating_add(time);
            match span.state {
                State::Off(Waiting::Uninterruptible, Some(true)) => self.storage_ns += time,
                State::Off(Waiting::Uninterruptible, Some(false)) => self.not_storage_ns += time,
                _ => {}
            }
        }
    }
}

/// What the slices of threads say.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Sums by kind.
    pub phases: PhaseSums,
    classes: Vec<VerifiedClass>,
    code: BTreeSet<(String, OpenedCode)>,
    libraries: Vec<String>,
    gc_cpu: u64,
    jit_cpu: u64,
    jit_methods: u64,
}

impl Gathered {
    /// Adds the slices of a thread that begin in a range.
    pub fn thread(&mut self, thread: &Thread, is_main: bool, range: (u64, u64), events: &Events) {
        let running = |range| thread.time(range, |state| state == State::Running);
        let is_jit = thread.name.as_deref() == Some(JIT);
        if is_jit {
            self.jit_cpu += running(range);
        }
        for one in thread.slices.iter().filter(|one| (range.0..=range.1).contains(&one.ts)) {
            let (name, duration) = (events.names.text(one.name), one.duration());
            self.phases.add(name, duration, is_main);
            self.jit_methods += u64::from(is_jit && name.starts_with("JIT compiling"));
            if is_gc(name) {
                let within = (one.ts, one.end.unwrap_or(range.1).min(range.1));
                self.gc_cpu += running(within);
            }
            if let Some(class) = name.strip_prefix(VERIFY) {
                self.classes.push(VerifiedClass { name: class.to_owned(), duration_ns: duration });
            }
            if let Some(code) = opened_code(name) {
                self.code.insert((name.to_owned(), code));
            }
            if let Some(file) = library(name).filter(|_| self.libraries.len() < MOST_LIBRARIES) {
                self.libraries.push(file.to_owned());
            }
        }
    }

    /// Which compiled code was taken.
    pub fn code(&self) -> Vec<OpenedCode> {
        self.code.iter().map(|(_, code)| code.clone()).collect()
    }

    fn longest_classes(&mut self) -> Vec<VerifiedClass> {
        let mut classes = std::mem::take(&mut self.classes);
        classes.sort_by_key(|class| Reverse(class.duration_ns));
        classes.truncate(MOST_SHOWN);
        classes
    }
}

/// The request for the process of the package, wholly inside the launch.
fn asked_for<'a>(launch: &Launch, timeline: &'a Timeline, events: &Events) -> Option<&'a Slice> {
    let slices = timeline.threads.iter().flat_map(|thread| &thread.slices);
    slices.into_iter().find(|one| {
        let package = events.names.text(one.name).strip_prefix(START_PROCESS);
        package == Some(&launch.package) && one.ts > launch.range.0 && one.end.is_some_and(|end| end < launch.range.1)
    })
}

fn milestones(mains: &[&Thread], range: (u64, u64), events: &Events) -> Vec<Milestone> {
    let last = |wanted: &str| {
        let slices = mains.iter().flat_map(|thread| &thread.slices);
        let begins = slices.filter(|one| (range.0..=range.1).contains(&one.ts)).map(|one| (one.ts, one.name));
        begins.filter(|(_, name)| events.names.text(*name) == wanted).map(|(ts, _)| ts).max()
    };
    let milestone = |(name, slice): &(&str, &str)| {
        let after_ns = last(slice)?.saturating_sub(range.0);
        Some(Milestone { name: (*name).to_owned(), after_ns })
    };
    MILESTONES.iter().filter_map(milestone).collect()
}

/// Calls that threads of these processes made in a range.
pub fn binder(own: &[&Process], timeline: &Timeline, range: (u64, u64)) -> BinderWaits {
    let mut waits = BinderWaits::default();
    for call in timeline.calls.iter().filter(|call| (range.0..=range.1).contains(&call.ts)) {
        let (Some(thread), Some(end)) = (timeline.threads.get(call.from), call.end) else { continue };
        let process = thread.process.and_then(|at| timeline.processes.get(at));
        let Some(process) = process.filter(|process| has(own, process)) else { continue };
        let (duration_ns, is_main_thread) = (end.saturating_sub(call.ts), thread.tid == process.pid);
        waits.count += 1;
        waits.duration_ns = waits.duration_ns.saturating_add(duration_ns);
        waits.main_thread_ns = waits.main_thread_ns.saturating_add(if is_main_thread { duration_ns } else { 0 });
        if duration_ns > LONG_CALL && waits.long.len() < MOST_LONG {
            let server = call.by.and_then(|at| timeline.threads.get(at));
            let to_process = server.and_then(|thread| thread.process).and_then(|at| timeline.processes.get(at));
            let to_process = to_process.or_else(|| timeline.process_of_pid(call.to));
            waits.long.push(LongCall {
                thread: thread.name.clone(),
                is_main_thread,
                to_process: to_process.map_or_else(|| call.to.to_string(), |process| process.name.clone()),
                to_thread: server.and_then(|thread| thread.name.clone()),
                duration_ns,
            });
        }
    }
    waits
}

fn busy_others(own: &[&Process], timeline: &Timeline, range: (u64, u64)) -> Vec<BusyProcess> {
    let busy = |process: &Process| {
        let threads = process.threads.iter().filter_map(|at| timeline.threads.get(*at));
        let running_ns = threads.map(|thread| thread.time(range, |state| state == State::Running)).sum();
        BusyProcess { name: process.name.clone(), running_ns }
    };
    let mut others: Vec<BusyProcess> =
        timeline.processes.iter().filter(|process| !has(own, process)).map(busy).collect();
    others.retain(|one| one.running_ns > 0);
    others.sort_by_key(|other| Reverse(other.running_ns));
    others.truncate(MOST_SHOWN);
    others
}
