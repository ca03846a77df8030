//! Threads that open files: their opens in order, when they were at work, and for how long.
//!
//! Owns the time that a thread takes between two moments, and when it is done with what it does: it waits for events, runs another
//! program, or ends. Leaves what the opens mean to [`crate::io::fallbacks`] and [`crate::starts::repeated_starts`].

use crate::integer_hash::IntegerMap;
use crate::time::recording_times::RecordingTimes;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, OffCpu, OffCpuReason, Open, ProcessKey};
use std::collections::HashSet;

/// A thread that waits so long for events or a time is done: as in table `first_waits`.
const LEAST_WAIT: Nanos = Nanos(1_000_000);

/// Time by the clock, and on the CPU where that is known, ns; both without what recording faults took. Differences may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Taken {
    /// On the CPU; by the clock where waits were not recorded.
    pub cpu: f64,
    /// By the clock.
    pub wall: f64,
}

impl Taken {
    pub fn less(self, other: Self) -> Self {
        Self { cpu: self.cpu - other.cpu, wall: self.wall - other.wall }
    }
}

/// The opens of one thread, and when it is not at work.
pub(crate) struct OpeningThread<'a> {
    pub process: ProcessKey,
    pub tid: u32,
    /// In the order of time.
    pub opens: Vec<&'a Open>,
    /// When it began to wait for events or a time.
    waits: Vec<Nanos>,
    /// When it began to wait for data in a read of a pipe, a socket or the like, that no child of its own process gave it.
    reads: Vec<Nanos>,
    /// Begin and end of the intervals in which it did not run, in order.
    off: Vec<(u64, u64)>,
    /// Stays on a CPU of which a hypervisor took a part, in order.
    robbed: Vec<RobbedStay>,
    ended: Nanos,
}

impl OpeningThread<'_> {
    fn new(process: ProcessKey, tid: u32, ended: Nanos) -> Self {
        let (opens, waits, reads, off, robbed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { process, tid, opens, waits, reads, off, robbed, ended }
    }

    /// A stay ends where the thread stops next, or ends.
    fn end_stays(&mut self) {
        let ended = self.ended.0;
        self.robbed.sort_by_key(|stay| stay.begin);
        for stay in &mut self.robbed {
            let next = self.off.get(self.off.partition_point(|(begin, _)| *begin < stay.begin));
            stay.end = next.map_or(ended, |(begin, _)| *begin).max(stay.begin);
        }
    }
}

/// A stay on a CPU, and how much of it a hypervisor took: when in the stay is not known.
#[derive(Clone, Copy, Debug)]
struct RobbedStay {
    begin: u64,
    end: u64,
    stolen: u64,
}

impl RobbedStay {
    /// What of it lies between two moments, ns, spread evenly over the stay.
    fn stolen_within(&self, from: u64, to: u64) -> f64 {
        let inside = self.end.min(to).saturating_sub(self.begin.max(from));
        let length = self.end.saturating_sub(self.begin).max(1);
        self.stolen.min(length) as f64 * inside as f64 / length as f64
    }
}

/// All threads that opened something.
pub(crate) struct OpeningThreads<'a> {
    pub threads: Vec<OpeningThread<'a>>,
    /// When each process began to run a program.
    execs: IntegerMap<ProcessKey, Vec<Nanos>>,
    recording: &'a RecordingTimes,
}

impl<'a> OpeningThreads<'a> {
    /// From the rows of a recording, in any order. `ended` is its end.
    pub fn new(tables: &'a Tables, recording: &'a RecordingTimes, ended: Nanos) -> Self {
        let mut numbers: IntegerMap<(ProcessKey, u32), usize> = IntegerMap::default();
        let mut threads: Vec<OpeningThread<'a>> = Vec::new();
        for open in &tables.opens {
            let (process, tid) = (open.process(), open.tid);
            let number = *numbers.entry((process, tid)).or_insert_with(|| {
                threads.push(OpeningThread::new(process, tid, ended));
                threads.len() - 1
            });
            threads[number].opens.push(open);
        }
        // What a program reads from a child that it started itself (of `uname`, say) is an answer, and no order.
        let forks = tables.forks.iter().filter(|row| !row.thread);
        let of_parents: HashSet<(ProcessKey, u32)> =
            forks.map(|row| (ProcessKey { pid: row.parent_pid, start: row.parent_start }, row.pid)).collect();
        let is_answer = |row: &OffCpu| row.waker_pid.is_some_and(|waker| of_parents.contains(&(row.process(), waker)));
        for row in &tables.off_cpu {
            let Some(number) = numbers.get(&(row.process(), row.tid)) else { continue };
            let thread = &mut threads[*number];
            match row.reason {
                OffCpuReason::Poll | OffCpuReason::Timer if row.duration >= LEAST_WAIT => thread.waits.push(row.ts),
                OffCpuReason::PipeOrSocket if row.duration >= LEAST_WAIT && !is_answer(row) => {
                    thread.reads.push(row.ts)
                }
                _ => {}
            }
            match row.reason {
                // Reported at the begin of the stay; its end is found when all are there.
                OffCpuReason::Stolen => {
                    thread.robbed.push(RobbedStay { begin: row.ts.0, end: row.ts.0, stolen: row.duration.0 });
                }
                _ => thread.off.push((row.ts.0, row.ts.0.saturating_add(row.duration.0))),
            }
        }
        for row in tables.exits.iter().filter(|row| !row.running) {
            if let Some(number) = numbers.get(&(row.process(), row.tid)) {
                threads[*number].ended = row.ts.min(ended);
            }
        }
        for thread in &mut threads {
            thread.opens.sort_by_key(|open| open.ts);
            thread.waits.sort();
            thread.reads.sort();
            thread.off.sort_unstable();
            thread.end_stays();
        }
        let mut execs: IntegerMap<ProcessKey, Vec<Nanos>> = IntegerMap::default();
        tables.execs.iter().for_each(|row| execs.entry(row.process()).or_default().push(row.ts));
        execs.values_mut().for_each(|times| times.sort());
        Self { threads, execs, recording }
    }

    /// When a process began to run its programs, in order.
    pub fn execs(&self, process: ProcessKey) -> &[Nanos] {
        self.execs.get(&process).map(Vec::as_slice).unwrap_or_default()
    }

    /// When a thread does something else at the latest, whatever it opens.
    pub fn limit(&self, thread: &OpeningThread<'_>, after: Nanos) -> Nanos {
        let limits = [first(self.execs(thread.process), after), first(&thread.waits, after), Some(thread.ended)];
        limits.into_iter().flatten().min().unwrap_or(thread.ended).max(after)
    }

    /// When a thread may have been given something to do at the earliest: what it does from then on can be its own.
    pub fn first_order(&self, thread: &OpeningThread<'_>, after: Nanos) -> Nanos {
        let limit = self.limit(thread, after);
        first(&thread.reads, after).map_or(limit, |read| read.min(limit))
    }

    /// Time of a thread between two moments.
    pub fn taken(&self, thread: usize, from: Nanos, to: Nanos) -> Taken {
        let thread = &self.threads[thread];
        let recording = self.recording.between(thread.process, thread.tid, from, to);
        let (from, to) = (from.0, to.0.max(from.0));
        // Intervals of a thread do not overlap: they end in the order in which they begin.
        let first = thread.off.partition_point(|(_, end)| *end <= from);
        let off = thread.off[first..].iter().take_while(|(begin, _)| *begin < to);
        let off: u64 =
            off.map(|(begin, end)| (*end).min(to).saturating_sub((*begin).max(from))).fold(0, u64::saturating_add);
        let first = thread.robbed.partition_point(|stay| stay.end <= from);
        let robbed = thread.robbed[first..].iter().take_while(|stay| stay.begin < to);
        let stolen: f64 = robbed.map(|stay| stay.stolen_within(from, to)).sum();
        let wall = (to - from).saturating_sub(recording.0);
        Taken { cpu: (wall.saturating_sub(off) as f64 - stolen).max(0.0), wall: wall as f64 }
    }
}

/// The first of these moments, in order, behind another.
fn first(times: &[Nanos], after: Nanos) -> Option<Nanos> {
    times.get(times.partition_point(|time| *time <= after)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hypervisor_took_is_no_cpu_time_and_is_spread_over_the_stay_on_the_cpu() {
        let tables = Tables::from_text(
            "
== opens
ts pid start tid path flags result dev ino
10 7   1     7   /a   0     3      1   1
== off_cpu
ts  duration pid start tid reason   runnable
50  50       7   1     7   runnable 50
100 100      7   1     7   stolen   0
500 100      7   1     7   runnable 100
600 40       7   1     7   stolen   0
",
        )
        .unwrap();
        let recording = RecordingTimes::new(&tables);
        let threads = OpeningThreads::new(&tables, &recording, Nanos(700));
        let cpu = |from, to| threads.taken(0, Nanos(from), Nanos(to)).cpu;
        // A stay of 400 without 100, and one of 100 without 40 that ends with the recording.
        assert_eq!((cpu(100, 500), cpu(100, 200), cpu(300, 600)), (300.0, 75.0, 150.0));
        assert_eq!((cpu(0, 50), cpu(600, 700), cpu(50, 100)), (50.0, 60.0, 0.0));
    }

    #[test]
    fn what_recording_faults_took_is_no_time_of_the_thread() {
        let tables = Tables::from_text(
            "
== opens
ts pid start tid path flags result dev ino
10 7   1     7   /a   0     3      1   1
== faults
ts  duration pid start tid address kind  recording
20  5        7   1     7   4096    minor 30
60  5        7   1     7   8192    minor -
70  5        7   1     7   8192    minor 15
80  5        7   1     8   8192    minor 9
== off_cpu
ts  duration pid start tid reason   runnable
100 50       7   1     7   runnable 50
",
        )
        .unwrap();
        let recording = RecordingTimes::new(&tables);
        let threads = OpeningThreads::new(&tables, &recording, Nanos(700));
        let taken = |from, to| threads.taken(0, Nanos(from), Nanos(to));
        assert_eq!(taken(10, 60), Taken { cpu: 20.0, wall: 20.0 });
        assert_eq!(taken(60, 160), Taken { cpu: 35.0, wall: 85.0 });
        // A fault is recorded when it has ended.
        assert_eq!(taken(10, 30), Taken { cpu: 20.0, wall: 20.0 });
    }
}
