//! Off-CPU time inside page faults and memory syscalls.
//!
//! Owns how much of that time is no cost of the fault or syscall. Durations are of the clock: a thread that another one displaces in a fault of a microsecond
//! is in it for milliseconds, and on an overloaded machine faults last longer than all CPU time that there is. Where waits were
//! recorded, the intervals in which a thread did not run (`off_cpu`) that lie in a fault or a call of it are taken off. Leaves where a
//! thread's time went to [`crate::time::ledger`], and costs to [`crate::findings`].
//!
//! - Waiting for storage stays: it is what a major fault is. That the thread then stood in a run queue is taken off.
//! - Waiting for memory stays too: what the thread waited for inside the kernel while it reclaimed or moved pages itself, which table
//!   `memory_work` shows. Where a kernel has no such events it is taken off like other waits there.
//! - Being displaced, and waiting for anything else, a lock of the address space for example, is taken off.
//! - An interval lies in a fault or call in which it *ends*, and counts from the begin of that on. Its begin may be reported some
//!   microseconds early, for the scheduler reads its clock before it switches; so of a thread that is displaced right after a fault,
//!   which is where the kernel looks for it, the interval can begin before the fault has ended.
//! - What a hypervisor took (`stolen`) stays: in which fault it did is not known.

use crate::integer_hash::IntegerMap;
use slowpath_recording::Tables;
use slowpath_tables::{Fault, MemoryCall, MemoryWork, MemoryWorkKind, Nanos, OffCpu, OffCpuReason, ProcessKey};

/// Whether a recording shows when threads did not run.
pub(crate) fn waits_recorded(tables: &Tables) -> bool {
    !tables.off_cpu.is_empty() || tables.manifest.ran("off_cpu")
}

/// What is to be taken off the durations of faults and memory calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffCpuTimes {
    is_recorded: bool,
    faults: TakenOff,
    calls: TakenOff,
}

/// What is to be taken off some rows; hardly any has anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TakenOff {
    of_row: IntegerMap<usize, Nanos>,
    /// The shortest duration of those: nearly all rows need no look into the map.
    shortest: Nanos,
}

impl TakenOff {
    fn add(&mut self, row: usize, duration: Nanos, off: Nanos) {
        if off.0 > 0 {
            self.shortest = if self.of_row.is_empty() { duration } else { self.shortest.min(duration) };
            self.of_row.insert(row, off.min(duration));
        }
    }

    fn of(&self, row: usize, duration: Nanos) -> Nanos {
        if self.of_row.is_empty() || duration < self.shortest {
            return Nanos(0);
        }
        self.of_row.get(&row).copied().unwrap_or_default()
    }
}

impl OffCpuTimes {
    /// Whether waits were recorded; where they were not, durations are all that is known.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// What of a fault, the row of this number, its thread did not run and is not its cost.
    pub fn in_fault(&self, row: usize, fault: &Fault) -> Nanos {
        fault.duration.map_or(Nanos(0), |duration| self.faults.of(row, duration))
    }

    /// The rest of its duration, where that is known.
    pub fn fault_time(&self, row: usize, fault: &Fault) -> Option<Nanos> {
        Some(fault.duration? - self.in_fault(row, fault))
    }

    /// What of a memory call its thread did not run.
    pub fn in_call(&self, row: usize, call: &MemoryCall) -> Nanos {
        self.calls.of(row, call.duration)
    }

    /// The rest of its duration.
    pub fn call_time(&self, row: usize, call: &MemoryCall) -> Nanos {
        call.duration - self.in_call(row, call)
    }
}

/// The faults of a recording with the time that their threads ran in them.
#[derive(Clone, Copy, Debug)]
pub struct FaultTimes<'a> {
    /// The rows.
    pub rows: &'a [Fault],
    /// What is taken off their durations.
    pub off_cpu: &'a OffCpuTimes,
}

impl FaultTimes<'_> {
    /// Of a row; `None` where its duration is not known.
    pub fn time(&self, row: usize) -> Option<Nanos> {
        self.off_cpu.fault_time(row, self.rows.get(row)?)
    }
}

/// Lays waits and faults beside each other. Rows may be in any order; it is faster where they are in that of time.
pub fn follow(tables: &Tables) -> OffCpuTimes {
    let mut times = OffCpuTimes { is_recorded: waits_recorded(tables), ..OffCpuTimes::default() };
    let mut threads = Threads::new(&tables.off_cpu, &OwnWork::new(&tables.memory_work));
    if threads.lines.is_empty() {
        return times;
    }
    for (row, fault) in tables.faults.iter().enumerate() {
        let Some(duration) = fault.duration else { continue };
        times.faults.add(row, duration, threads.within((fault.process(), fault.tid), fault.ts, duration));
    }
    for (row, call) in tables.memory_calls.iter().enumerate() {
        let off = threads.within((call.process(), call.tid), call.ts, call.duration);
        times.calls.add(row, call.duration, off);
    }
    times
}

/// A time in which a thread did not run, ns.
#[derive(Clone, Copy, Debug)]
struct Interval {
    from: u64,
    to: u64,
    /// What counts of it: its last part.
    most: u64,
}

impl Interval {
    fn of(row: &OffCpu, work: &OwnWork) -> Option<Self> {
        let to = row.ts.0.saturating_add(row.duration.0);
        let most = match row.reason {
            OffCpuReason::Stolen => return None,
            OffCpuReason::FaultIo | OffCpuReason::OtherIo => row.runnable.min(row.duration),
            OffCpuReason::Kernel if work.holds((row.process(), row.tid), to) => row.runnable.min(row.duration),
            _ => row.duration,
        };
        Some(Self { from: row.ts.0, to, most: most.0 })
    }
}

/// When threads reclaimed or moved pages themselves: from and to, in order, none of a thread in another.
#[derive(Debug, Default)]
struct OwnWork(IntegerMap<Thread, Vec<(u64, u64)>>);

impl OwnWork {
    fn new(rows: &[MemoryWork]) -> Self {
        use MemoryWorkKind::{DirectCompaction, DirectReclaim, GroupReclaim};
        let mut of_thread: IntegerMap<Thread, Vec<(u64, u64)>> = IntegerMap::default();
        for row in rows.iter().filter(|row| matches!(row.work, DirectCompaction | DirectReclaim | GroupReclaim)) {
            let Some(duration) = row.duration else { continue };
            let work = (row.ts.0, row.ts.0.saturating_add(duration.0));
            of_thread.entry((row.process(), row.tid)).or_default().push(work);
        }
        for works in of_thread.values_mut() {
            works.sort_unstable();
            works.dedup_by(|next, last| {
                let is_one = next.0 <= last.1;
                last.1 = if is_one { last.1.max(next.1) } else { last.1 };
                is_one
            });
        }
        Self(of_thread)
    }

    /// Whether a wait of the thread that ends then is one in its work: that begins before and goes on after, or ends with it.
    fn holds(&self, thread: Thread, end: u64) -> bool {
        let Some(works) = self.0.get(&thread) else { return false };
        let next = works.partition_point(|work| work.1 < end);
        works.get(next).is_some_and(|work| work.0 < end)
    }
}

/// The intervals of one thread by their ends, and how far they have been looked at.
#[derive(Debug, Default)]
struct Line {
    intervals: Vec<Interval>,
    next: usize,
    looked_at: u64,
}

type Thread = (ProcessKey, u32);

#[derive(Debug, Default)]
struct Threads {
    numbers: IntegerMap<Thread, usize>,
    lines: Vec<Line>,
    /// The thread that was asked for last: rows of one thread follow each other.
    last: Option<(Thread, Option<usize>)>,
}

impl Threads {
    fn new(rows: &[OffCpu], work: &OwnWork) -> Self {
        let mut threads = Self::default();
        for row in rows {
            let Some(interval) = Interval::of(row, work).filter(|interval| interval.most > 0) else { continue };
            let number = *threads.numbers.entry((row.process(), row.tid)).or_insert_with(|| {
                threads.lines.push(Line::default());
                threads.lines.len() - 1
            });
            threads.lines[number].intervals.push(interval);
        }
        threads.lines.iter_mut().for_each(|line| line.intervals.sort_by_key(|interval| interval.to));
        threads
    }

    /// What of these moments the thread did not run.
    fn within(&mut self, thread: Thread, from: Nanos, duration: Nanos) -> Nanos {
        let number = match self.last {
            Some((last, number)) if last == thread => number,
            _ => self.numbers.get(&thread).copied(),
        };
        self.last = Some((thread, number));
        let Some(line) = number.and_then(|number| self.lines.get_mut(number)) else { return Nanos(0) };
        let (from, to) = (from.0, from.0.saturating_add(duration.0));
        if from < line.looked_at {
            line.next = line.intervals.partition_point(|interval| interval.to <= from);
        }
        line.looked_at = from;
        line.next += line.intervals[line.next..].iter().take_while(|interval| interval.to <= from).count();
        let inside = line.intervals[line.next..].iter().take_while(|interval| interval.to <= to);
        Nanos(inside.fold(0, |sum, one| sum.saturating_add((one.to - one.from.max(from)).min(one.most))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of each fault and of each call, ns.
    fn left(rows: &str) -> (Vec<Option<u64>>, Vec<u64>) {
        let tables = Tables::from_text(rows).unwrap();
        let times = follow(&tables);
        assert!(times.is_recorded());
        let faults = tables.faults.iter().enumerate().map(|(row, fault)| Some(times.fault_time(row, fault)?.0));
        let calls = tables.memory_calls.iter().enumerate().map(|(row, call)| times.call_time(row, call).0);
        (faults.collect(), calls.collect())
    }

    #[test]
    fn what_a_thread_did_not_run_in_a_fault_or_a_call_is_taken_off_and_what_it_did_beside_is_not() {
        let (faults, calls) = left(
            "
== faults
ts    duration pid start tid kind
1000  500      7   1     7   minor
2000  5000     7   1     7   minor
2000  5000     7   1     8   minor
2000  5000     9   2     7   minor
9000  -        7   1     7   minor
20000 9000     7   1     7   minor
== memory_calls
ts    duration pid start tid call
10000 3000     7   1     7   munmap
14000 3000     7   1     7   munmap
== off_cpu
ts    duration pid start tid reason   runnable
1600  300      7   1     7   runnable 300
3000  3500     7   1     7   runnable 3500
10500 2000     7   1     7   kernel   100
15000 4000     7   1     7   runnable 4000
21000 1000     7   1     7   kernel   0
23000 2000     7   1     7   throttled 2000
",
        );
        // The fourth interval ends after the second call: it began in it by a clock that was read early.
        assert_eq!(faults, [Some(500), Some(1500), Some(5000), Some(5000), None, Some(6000)]);
        assert_eq!(calls, [1000, 3000]);
    }

    #[test]
    fn waiting_for_storage_is_what_a_fault_costs_and_standing_in_a_queue_after_it_is_not() {
        let (faults, _) = left(
            "
== faults
ts    duration pid start tid kind
1000  9000     7   1     7   major
20000 9000     7   1     7   minor
40000 9000     7   1     7   minor
== off_cpu
ts    duration pid start tid reason   runnable
1500  8000     7   1     7   fault_io 3000
20500 8000     7   1     7   fault_io 0
40500 8000     7   1     7   stolen   0
",
        );
        assert_eq!(faults, [Some(6000), Some(9000), Some(9000)]);
    }

    #[test]
    fn waiting_for_memory_is_what_a_fault_costs_and_standing_in_a_queue_in_it_or_waiting_for_a_lock_is_not() {
        let (faults, calls) = left(
            "
== faults
ts    duration pid start tid kind
1000  9000     7   1     7   minor
20000 9000     7   1     7   minor
40000 9000     7   1     7   minor
60000 9000     7   1     8   minor
== memory_calls
ts    duration pid start tid call
80000 9000     7   1     7   mmap
== memory_work
ts    duration pid start tid in_tree work
1200  3000     7   1     7   true    direct_reclaim
2000  7000     7   1     7   true    direct_compaction
20500 8000     7   1     7   true    group_reclaim
40500 2000     7   1     7   true    direct_reclaim
60500 8000     7   1     7   true    direct_reclaim
80500 8000     7   1     7   true    group_reclaim
80500 -        7   1     7   true    wake_kswapd
== off_cpu
ts    duration pid start tid reason    runnable
1300  2000     7   1     7   kernel    500
6000  2000     7   1     7   kernel    0
21000 1000     7   1     7   runnable  1000
23000 4000     7   1     7   kernel    100
41000 1000     7   1     7   throttled 1000
43000 4000     7   1     7   kernel    0
61000 5000     7   1     8   kernel    0
81000 5000     7   1     7   kernel    0
",
        );
        // In the third fault the thread waited once more when it had reclaimed; what another thread reclaimed meanwhile is not its own.
        assert_eq!(faults, [Some(8500), Some(7900), Some(4000), Some(4000)]);
        assert_eq!(calls, [9000]);
    }

    #[test]
    fn rows_may_be_in_any_order_and_nothing_is_below_zero() {
        let (faults, _) = left(
            "
== faults
ts    duration pid start tid kind
20000 1000     7   1     7   minor
1000  1000     7   1     7   minor
10000 1000     7   1     7   minor
== off_cpu
ts    duration pid start tid reason   runnable
20100 800      7   1     7   runnable 800
0     1900     7   1     7   runnable 1900
10100 800      7   1     7   runnable 800
10000 950      7   1     7   kernel   0
20100 18446744073709551615 7 1 7 kernel 0
",
        );
        assert_eq!(faults, [Some(200), Some(100), Some(0)]);
    }

    #[test]
    fn without_waits_nothing_is_taken_off_and_none_is_said_to_have_been_recorded() {
        let tables = Tables::from_text("== faults\nts duration pid start kind\n1 1000 7 1 minor\n").unwrap();
        let times = follow(&tables);
        assert!(!times.is_recorded());
        assert_eq!(times.fault_time(0, &tables.faults[0]), Some(Nanos(1000)));
    }

    proptest::proptest! {
        #[test]
        fn as_much_is_taken_off_as_a_look_at_every_interval_says(
            waits in proptest::collection::vec((0u64..400, 1u64..30, 0u8..3), 0..40),
            faults in proptest::collection::vec((0u64..400, 0u64..40), 0..40),
            works in proptest::collection::vec((0u64..400, 0u64..60), 0..12),
        ) {
            let mut text = "== off_cpu\nts duration pid start tid reason runnable\n".to_owned();
            for (ts, duration, reason) in &waits {
                let (reason, runnable) = [("runnable", *duration), ("kernel", 0), ("fault_io", duration / 3)][usize::from(*reason)];
                text += &format!("{ts} {duration} 7 1 7 {reason} {runnable}\n");
            }
            text += "== faults\nts duration pid start tid kind\n";
            faults.iter().for_each(|(ts, duration)| text += &format!("{ts} {duration} 7 1 7 minor\n"));
            text += "== memory_work\nts duration pid start tid in_tree work\n";
            works.iter().for_each(|(ts, duration)| text += &format!("{ts} {duration} 7 1 7 true direct_reclaim\n"));
            let tables = Tables::from_text(&text).unwrap();
            let times = follow(&tables);
            for (row, fault) in tables.faults.iter().enumerate() {
                let (from, to) = (fault.ts.0, fault.ts.0 + fault.duration.unwrap().0);
                let inside = tables.off_cpu.iter().filter(|wait| (from + 1..=to).contains(&(wait.ts.0 + wait.duration.0)));
                let off: u64 = inside
                    .map(|wait| {
                        let end = wait.ts.0 + wait.duration.0;
                        let is_in = |(ts, duration): &(u64, u64)| (ts + 1..=ts + duration).contains(&end);
                        let stays = match wait.reason {
                            OffCpuReason::Kernel => works.iter().any(is_in),
                            reason => reason == OffCpuReason::FaultIo,
                        };
                        let inside = end - wait.ts.0.max(from);
                        if stays { inside.min(wait.runnable.0) } else { inside }
                    })
                    .sum();
                proptest::prop_assert_eq!(times.in_fault(row, fault).0, off.min(to - from));
            }
        }
    }
}
