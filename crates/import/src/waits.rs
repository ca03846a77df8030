//! When threads did not run, from the scheduler's switches and wake-ups.
//!
//! Each thread's interval is from its own switch out to its own switch in: a switch that the trace lacks, such as that of a CPU's idle
//! task, changes nothing for others.

use crate::tasks::Thread;
use slowpath_tables::{Nanos, OffCpu, OffCpuReason};
use std::collections::HashMap;

/// Threads that wait at a time.
const MOST_WAITING: usize = 1 << 20;

/// Who woke a thread.
pub type Waker = Option<Thread>;

#[derive(Debug)]
struct Wait {
    thread: Thread,
    since: Nanos,
    reason: OffCpuReason,
    stack: Option<u32>,
    woken: Option<(Nanos, Waker)>,
}

/// The threads that do not run now.
#[derive(Debug, Default)]
pub struct Waits {
    by_thread: HashMap<u32, Wait>,
    /// Intervals whose end is missing.
    pub without_end: u64,
}

impl Waits {
    /// A thread left its CPU.
    pub fn leave(&mut self, ts: Nanos, thread: Thread, reason: OffCpuReason, stack: Option<u32>) {
        if self.by_thread.len() < MOST_WAITING || self.by_thread.contains_key(&thread.tid) {
            let wait = Wait { thread, since: ts, reason, stack, woken: None };
            self.without_end += u64::from(self.by_thread.insert(thread.tid, wait).is_some());
        } else {
            self.without_end += 1;
        }
    }

    /// A thread was woken; the first wake-up is what ends a wait.
    pub fn wake(&mut self, ts: Nanos, tid: u32, waker: Waker) {
        if let Some(wait) = self.by_thread.get_mut(&tid)
            && wait.reason != OffCpuReason::Runnable
        {
            wait.woken.get_or_insert((ts, waker));
        }
    }

    /// The kernel said what a thread waits for, where the trace did not show it before.
    pub fn because(&mut self, tid: u32, reason: OffCpuReason) {
        if let Some(wait) = self.by_thread.get_mut(&tid)
            && wait.reason == OffCpuReason::Kernel
        {
            wait.reason = reason;
        }
    }

    /// A thread runs again: its interval, where its begin was seen.
    pub fn enter(&mut self, ts: Nanos, tid: u32) -> Option<OffCpu> {
        self.by_thread.remove(&tid).map(|wait| wait.row(ts))
    }

    /// A thread ended while it did not run.
    pub fn end(&mut self, tid: u32) {
        self.by_thread.remove(&tid);
    }

    /// The intervals that outlast the trace.
    pub fn finish(&mut self, last: Nanos) -> Vec<OffCpu> {
        let mut waits: Vec<Wait> = std::mem::take(&mut self.by_thread).into_values().collect();
        waits.sort_by_key(|wait| (wait.since, wait.thread.tid));
        waits.into_iter().map(|wait| wait.row(last)).collect()
    }
}

impl Wait {
    fn row(self, end: Nanos) -> OffCpu {
        let duration = end - self.since;
        let runnable = match (self.reason, self.woken) {
            (OffCpuReason::Runnable, _) => duration,
            (_, Some((woken, _))) => (end - woken).min(duration),
            (_, None) => Nanos(0),
        };
        let waker = self.woken.and_then(|(_, waker)| waker);
        OffCpu {
            ts: self.since,
            duration,
            pid: self.thread.process.pid,
            start: self.thread.process.start,
            tid: self.thread.tid,
            reason: self.reason,
            runnable,
            woken: self.woken.map(|(ts, _)| ts),
            waker_pid: waker.map(|waker| waker.process.pid),
            waker_tid: waker.map(|waker| waker.tid),
            syscall: -1,
            stack: self.stack,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::ProcessKey;

    fn thread(tid: u32) -> Thread {
        Thread { process: ProcessKey { pid: 7, start: Nanos(1) }, tid }
    }

    #[test]
    fn a_wait_lasts_from_the_threads_own_switch_out_to_its_own_switch_in() {
        let mut waits = Waits::default();
        waits.leave(Nanos(10), thread(8), OffCpuReason::Futex, Some(3));
        waits.wake(Nanos(50), 8, Some(thread(9)));
        waits.wake(Nanos(55), 8, None);
        let row = waits.enter(Nanos(60), 8).unwrap();
        assert_eq!((row.ts, row.duration, row.runnable, row.woken), (Nanos(10), Nanos(50), Nanos(10), Some(Nanos(50))));
        assert_eq!((row.waker_pid, row.waker_tid, row.stack), (Some(7), Some(9), Some(3)));
        assert_eq!(waits.enter(Nanos(70), 8), None);
    }

    #[test]
    fn who_was_displaced_could_run_all_the_time_and_an_end_that_is_missing_is_counted() {
        let mut waits = Waits::default();
        waits.leave(Nanos(10), thread(8), OffCpuReason::Runnable, None);
        waits.leave(Nanos(20), thread(8), OffCpuReason::Runnable, None);
        waits.leave(Nanos(15), thread(9), OffCpuReason::Poll, None);
        assert_eq!(waits.without_end, 1);
        let rows = waits.finish(Nanos(30));
        let found: Vec<_> = rows.iter().map(|row| (row.tid, row.duration.0, row.runnable.0)).collect();
        assert_eq!(found, [(9, 15, 0), (8, 10, 10)]);
    }
}
