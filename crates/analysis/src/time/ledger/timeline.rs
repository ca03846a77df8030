//! One thread's time from its begin to its end, walked once.
//!
//! Owns how intervals that lie in each other share a moment: an interval off the CPU has it first, then a page fault, then a
//! memory call; what is left the thread ran. Nothing is counted twice, whatever the rows say.

use super::account::{Account, Category};
use slowpath_tables::{CpuSample, Fault, FaultKind, MemoryCall, Nanos, OffCpu, OffCpuReason};

/// An interval of one category, ns.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: u64,
    end: u64,
    category: Category,
}

/// Intervals of one kind, of which none overlaps another.
#[derive(Debug, Default)]
struct Track {
    spans: Vec<Span>,
    at: usize,
}

impl Track {
    fn push(&mut self, begin: u64, length: u64, category: Category) {
        self.spans.push(Span { begin, end: begin.saturating_add(length), category });
    }

    /// Sorts, and cuts off what lies outside of the thread's life or in an earlier interval.
    fn settle(&mut self, began: u64, ended: u64) {
        if !self.spans.is_sorted_by_key(|span| span.begin) {
            self.spans.sort_by_key(|span| span.begin);
        }
        let mut free = began;
        self.spans.retain_mut(|span| {
            span.begin = span.begin.max(free);
            span.end = span.end.min(ended);
            let is_left = span.begin < span.end;
            if is_left {
                free = span.end;
            }
            is_left
        });
        self.at = 0;
    }

    /// What covers `t`, and when that changes. `t` must not go back.
    fn look(&mut self, t: u64) -> (Option<Category>, u64) {
        while self.spans.get(self.at).is_some_and(|span| span.end <= t) {
            self.at += 1;
        }
        match self.spans.get(self.at) {
            Some(span) if span.begin <= t => (Some(span.category), span.end),
            Some(span) => (None, span.begin),
            None => (None, u64::MAX),
        }
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.at = 0;
    }
}

/// What the intervals of one thread say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walked {
    /// All but the time on the CPU outside of faults and memory calls.
    pub account: Account,
    /// The time on the CPU outside of them by the intervals: what they leave over of the thread's life.
    pub left: Nanos,
    /// The part of the faults and memory calls in `account` that the thread ran: all but waits for storage.
    pub ran_in_them: Nanos,
    /// CPU samples outside of them: in user mode, and in the kernel.
    pub samples: (u64, u64),
    /// Page faults of unknown duration.
    pub untimed_faults: u64,
}

/// The rows of one thread, collected for a walk. It is used again for the next thread.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    off: Track,
    faults: Track,
    calls: Track,
    /// When, and whether in the kernel.
    samples: Vec<(u64, bool)>,
    /// Begin and length.
    stolen: Vec<(u64, u64)>,
    untimed: Vec<u64>,
}

impl Timeline {
    pub(crate) fn off_cpu(&mut self, row: &OffCpu) {
        let category = Category::of_wait(row.reason);
        match row.reason {
            // In a stay on the CPU, at a place that is not known.
            OffCpuReason::Stolen => self.stolen.push((row.ts.0, row.duration.0)),
            OffCpuReason::Runnable | OffCpuReason::Throttled => self.off.push(row.ts.0, row.duration.0, category),
            _ => {
                let runnable = row.runnable.min(row.duration);
                let waited = row.duration - runnable;
                self.off.push(row.ts.0, waited.0, category);
                self.off.push(row.ts.0.saturating_add(waited.0), runnable.0, Category::Runnable);
            }
        }
    }

    pub(crate) fn fault(&mut self, row: &Fault) {
        let category = match row.kind {
            FaultKind::Minor => Category::MinorFault,
            FaultKind::Major => Category::MajorFault,
        };
        match row.duration {
            Some(duration) => self.faults.push(row.ts.0, duration.0, category),
            None => self.untimed.push(row.ts.0),
        }
    }

    pub(crate) fn memory_call(&mut self, row: &MemoryCall) {
        self.calls.push(row.ts.0, row.duration.0, Category::MemoryCall);
    }

    pub(crate) fn sample(&mut self, row: &CpuSample) {
        self.samples.push((row.ts.0, row.kernel));
    }

    /// Walks the life of the thread, and forgets its rows.
    pub(crate) fn walk(&mut self, began: Nanos, ended: Nanos) -> Walked {
        self.walk_each(began, ended, |_, _, _| ())
    }

    /// Walks the life of the thread, and forgets its rows. `each` sees every piece of it, in order and without a gap: begin, end, and
    /// what the thread did; `None` where it ran outside of faults and memory calls.
    pub(crate) fn walk_each(
        &mut self,
        began: Nanos,
        ended: Nanos,
        mut each: impl FnMut(u64, u64, Option<Category>),
    ) -> Walked {
        let (began, ended) = (began.0, ended.0);
        let untimed = self.untimed.iter().filter(|ts| (began..=ended).contains(*ts)).count() as u64;
        let mut walked = Walked { untimed_faults: untimed, ..Walked::default() };
        for track in [&mut self.off, &mut self.faults, &mut self.calls] {
            track.settle(began, ended);
        }
        if !self.samples.is_sorted() {
            self.samples.sort_unstable();
        }
        let first = self.samples.partition_point(|(ts, _)| *ts < began);
        let mut samples = self.samples[first..].iter().peekable();
        let (mut t, mut left, mut ran_in_them) = (began, 0u64, 0u64);
        while t < ended {
            let (off, off_until) = self.off.look(t);
            let (fault, fault_until) = self.faults.look(t);
            let (call, call_until) = self.calls.look(t);
            let next = off_until.min(fault_until).min(call_until).min(ended);
            let time = next - t;
            let inside = fault.or(call);
            each(t, next, off.or(inside));
            match off.or(inside) {
                Some(category) => walked.account.add(category, Nanos(time)),
                None => left += time,
            }
            if off.is_none() && inside.is_some() {
                ran_in_them += time;
            }
            while let Some((_, kernel)) = samples.next_if(|(ts, _)| *ts < next) {
                match (inside, kernel) {
                    (Some(_), _) => {}
                    (None, false) => walked.samples.0 += 1,
                    (None, true) => walked.samples.1 += 1,
                }
            }
            t = next;
        }
        walked.left = Nanos(left);
        walked.ran_in_them = Nanos(ran_in_them);
        let inside = |&(ts, length): &(u64, u64)| ts.saturating_add(length).min(ended).saturating_sub(ts.max(began));
        let stolen = self.stolen.iter().map(inside).fold(0, u64::saturating_add);
        walked.account.add(Category::Stolen, Nanos(stolen.min(ended - began)));
        self.clear();
        walked
    }

    fn clear(&mut self) {
        [&mut self.off, &mut self.faults, &mut self.calls].into_iter().for_each(Track::clear);
        self.samples.clear();
        self.stolen.clear();
        self.untimed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::memory_rows::memory_call;
    use Category::{Events, Lock, MajorFault, MinorFault, PipeOrSocket, Runnable, Stolen, Throttled, Timer};

    fn off(ts: u64, duration: u64, runnable: u64, reason: OffCpuReason) -> OffCpu {
        OffCpu {
            ts: Nanos(ts),
            duration: Nanos(duration),
            pid: 7,
            start: Nanos(1),
            tid: 7,
            reason,
            runnable: Nanos(runnable),
            woken: None,
            waker_pid: None,
            waker_tid: None,
            syscall: -1,
            stack: None,
        }
    }

    fn fault(ts: u64, duration: Option<u64>, kind: FaultKind) -> Fault {
        Fault { duration: duration.map(Nanos), kind, ..crate::memory::memory_rows::fault(ts, 0) }
    }

    fn sample(ts: u64, kernel: bool) -> CpuSample {
        CpuSample {
            ts: Nanos(ts),
            pid: 7,
            start: Nanos(1),
            tid: 7,
            cpu: 0,
            kernel,
            stack: None,
            first_argument: None,
            second_argument: None,
            copies: None,
        }
    }

    fn times(walked: &Walked) -> Vec<(Category, u64)> {
        walked.account.iter().filter(|(_, time)| time.0 > 0).map(|(category, time)| (category, time.0)).collect()
    }

    #[test]
    fn a_wait_for_storage_in_a_fault_is_fault_time_and_its_tail_is_runnable() {
        let mut line = Timeline::default();
        line.fault(&fault(100, Some(50), FaultKind::Major));
        line.off_cpu(&off(110, 30, 5, OffCpuReason::FaultIo));
        line.fault(&fault(200, Some(10), FaultKind::Minor));
        // Somebody else had the CPU.
        line.off_cpu(&off(203, 4, 4, OffCpuReason::Runnable));
        line.fault(&fault(300, None, FaultKind::Minor));
        let walked = line.walk(Nanos(0), Nanos(400));
        // The major fault: 10 before the wait, 25 in it, 10 after it.
        assert_eq!(times(&walked), [(MinorFault, 6), (MajorFault, 45), (Runnable, 9)]);
        assert_eq!((walked.left, walked.ran_in_them, walked.untimed_faults), (Nanos(340), Nanos(26), 1));
        let again = line.walk(Nanos(0), Nanos(10));
        assert_eq!((times(&again), again.left, again.untimed_faults), (vec![], Nanos(10), 0));
    }

    #[test]
    fn the_tail_of_a_wait_is_runnable_and_stolen_time_takes_no_place() {
        let mut line = Timeline::default();
        line.off_cpu(&off(60, 30, 10, OffCpuReason::Futex));
        line.off_cpu(&off(10, 30, 30, OffCpuReason::Throttled));
        line.off_cpu(&off(5, 7, 0, OffCpuReason::Stolen));
        let walked = line.walk(Nanos(0), Nanos(100));
        assert_eq!(times(&walked), [(Lock, 20), (Runnable, 10), (Throttled, 30), (Stolen, 7)]);
        assert_eq!(walked.left, Nanos(40));
    }

    #[test]
    fn rows_beyond_the_life_and_rows_that_overlap_are_cut() {
        let mut line = Timeline::default();
        line.off_cpu(&off(90, 50, 20, OffCpuReason::Poll));
        line.off_cpu(&off(130, 20, 0, OffCpuReason::Timer));
        line.off_cpu(&off(180, 1000, 990, OffCpuReason::PipeOrSocket));
        line.off_cpu(&off(u64::MAX, u64::MAX, 1, OffCpuReason::PipeOrSocket));
        line.off_cpu(&off(90, 30, 0, OffCpuReason::Stolen));
        line.off_cpu(&off(300, 30, 0, OffCpuReason::Stolen));
        [50, 150, 300].into_iter().for_each(|ts| line.fault(&fault(ts, None, FaultKind::Minor)));
        let walked = line.walk(Nanos(100), Nanos(200));
        // Waits until 120 and runnable until 140, then 140..150, then 180..190 and runnable to the end.
        let expected = [(PipeOrSocket, 10), (Events, 20), (Timer, 10), (Runnable, 30), (Stolen, 20)];
        assert_eq!(times(&walked), expected);
        assert_eq!((walked.left, walked.untimed_faults), (Nanos(30), 1));
    }

    #[test]
    fn a_fault_in_a_memory_call_is_a_fault_and_samples_in_either_do_not_count() {
        let mut line = Timeline::default();
        line.memory_call(&MemoryCall {
            duration: Nanos(50),
            ..memory_call(slowpath_tables::MemoryCallKind::Mmap, 10, 0, 0)
        });
        line.fault(&fault(20, Some(5), FaultKind::Minor));
        for (ts, kernel) in [(70, true), (15, true), (22, true), (80, false), (5, false), (500, false)] {
            line.sample(&sample(ts, kernel));
        }
        let walked = line.walk(Nanos(0), Nanos(100));
        assert_eq!(times(&walked), [(MinorFault, 5), (Category::MemoryCall, 45)]);
        assert_eq!((walked.samples, walked.left), ((2, 1), Nanos(50)));
    }
}
