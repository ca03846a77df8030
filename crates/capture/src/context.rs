//! What the decoder carries from record to record about processes: which had a pid when, and what was reported of processes
//! that ran already. Bounded: by the pids that there are and by [`ENDED_KEPT`], not by the length of a recording.

use crate::events;
use slowpath_tables::{Exec, Nanos, ProcessKey};
use std::collections::{HashMap, VecDeque};

/// Processes that are remembered after their end. A CPU collects 32 faults before it reports them, so faults of a
/// process may come after its end; never after so many others, whose own faults fill the batches.
const ENDED_KEPT: usize = 262_144;

/// The walk over running tasks reports a process and its further threads within this time.
const WALK: Nanos = Nanos(5_000_000_000);

/// What a decoder may know besides its record.
#[derive(Default)]
pub(crate) struct Context {
    /// Starts of the processes that had a pid, in the order in which they were reported.
    starts: HashMap<u32, Vec<Start>>,
    /// Ended processes, the earliest first.
    ended: VecDeque<ProcessKey>,
    /// Of the further threads of processes that ran already.
    present: HashMap<ProcessKey, SoFar>,
    /// Rows of processes that ran already, until their further threads are counted.
    held: Vec<Exec>,
    /// Since when there is something of a walk.
    walk: Option<Nanos>,
}

/// Counters of threads at the begin.
#[derive(Clone, Copy, Default)]
struct SoFar {
    minor: u64,
    major: u64,
    run_time: u64,
}

struct Start {
    start: Nanos,
    is_over: bool,
}

impl Context {
    /// The process that had this pid at `ts`; start 0 for one outside the tree. The time decides, not the place in the
    /// ring: a batch of faults comes later than they happened, perhaps after its process ended and its pid was given anew.
    pub(crate) fn process(&self, pid: u32, ts: Nanos) -> ProcessKey {
        let starts = self.starts.get(&pid).map(Vec::as_slice).unwrap_or_default();
        let found = starts.iter().rev().find(|one| one.start <= ts).or(starts.first());
        ProcessKey { pid, start: found.map(|one| one.start).unwrap_or_default() }
    }

    /// A process was reported.
    pub(crate) fn learn(&mut self, pid: u32, start: Nanos) {
        let starts = self.starts.entry(pid).or_default();
        if starts.iter().any(|one| one.start == start) {
            return;
        }
        // Who had the pid before has ended, even when its end was lost.
        let over = starts.iter_mut().filter(|one| !one.is_over);
        let over: Vec<ProcessKey> = over
            .map(|one| {
                one.is_over = true;
                ProcessKey { pid, start: one.start }
            })
            .collect();
        starts.push(Start { start, is_over: false });
        over.into_iter().for_each(|process| self.forget_later(process));
    }

    /// The last thread of a process ended.
    pub(crate) fn end(&mut self, process: ProcessKey) {
        let starts = self.starts.get_mut(&process.pid).map(Vec::as_mut_slice).unwrap_or_default();
        if let Some(one) = starts.iter_mut().find(|one| one.start == process.start && !one.is_over) {
            one.is_over = true;
            self.forget_later(process);
        }
    }

    fn forget_later(&mut self, process: ProcessKey) {
        self.ended.push_back(process);
        if self.ended.len() <= ENDED_KEPT {
            return;
        }
        let Some(earliest) = self.ended.pop_front() else { return };
        if let Some(starts) = self.starts.get_mut(&earliest.pid) {
            starts.retain(|one| one.start != earliest.start);
            if starts.is_empty() {
                self.starts.remove(&earliest.pid);
            }
        }
    }

    /// Takes the counters of a further thread of a process that ran already.
    pub(crate) fn count_present(&mut self, thread: &events::exec_event) {
        let process = ProcessKey { pid: thread.header.pid, start: Nanos(thread.start) };
        let so_far = self.present.entry(process).or_default();
        so_far.minor = so_far.minor.saturating_add(thread.min_flt);
        so_far.major = so_far.major.saturating_add(thread.maj_flt);
        so_far.run_time = so_far.run_time.saturating_add(thread.run_time);
        self.walk.get_or_insert(Nanos(thread.header.ts));
    }

    /// Keeps the row of a process that ran already until its further threads are counted.
    pub(crate) fn hold(&mut self, exec: Exec) {
        self.walk.get_or_insert(exec.ts);
        self.held.push(exec);
    }

    /// The rows that were kept, when the walk is over at `now`.
    pub(crate) fn release(&mut self, now: Nanos) -> Vec<Exec> {
        match self.walk {
            Some(began) if now.0 > began.0.saturating_add(WALK.0) => self.release_all(),
            _ => Vec::new(),
        }
    }

    /// The rows that were kept.
    pub(crate) fn release_all(&mut self) -> Vec<Exec> {
        self.walk = None;
        let present = std::mem::take(&mut self.present);
        let mut held = std::mem::take(&mut self.held);
        for exec in &mut held {
            let threads = present.get(&exec.process()).copied().unwrap_or_default();
            exec.min_flt = exec.min_flt.saturating_add(threads.minor);
            exec.maj_flt = exec.maj_flt.saturating_add(threads.major);
            exec.run_time = exec.run_time.map(|time| Nanos(time.0.saturating_add(threads.run_time)));
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_processes_are_forgotten_only_after_very_many_others() {
        let mut context = Context::default();
        let key = |number: usize| ProcessKey { pid: (number % 1000) as u32, start: Nanos(number as u64 + 1) };
        for number in 0..ENDED_KEPT + 2000 {
            let process = key(number);
            context.learn(process.pid, process.start);
            // Every other end was lost.
            if number % 2 == 0 {
                context.end(process);
            }
        }
        let known: usize = context.starts.values().map(Vec::len).sum();
        assert!((ENDED_KEPT..=ENDED_KEPT + 1000).contains(&known), "{known}");
        assert_eq!(context.process(5, Nanos(1)).start, key(3005).start.min(context.starts[&5][0].start));
        assert_eq!(context.process(5, Nanos(1 << 40)), key(ENDED_KEPT + 2000 - 1 - (ENDED_KEPT + 2000 - 1 - 5) % 1000));
    }
}
