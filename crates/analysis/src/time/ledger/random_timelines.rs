//! Ledgers of random timelines, of which the truth is known.

use super::*;
use crate::memory::memory_rows::{fault, memory_call};
use proptest::prelude::*;
use slowpath_tables::{Exit, Fault, FaultKind, Fork, MemoryCall, MemoryCallKind, OffCpu, OffCpuReason};

/// A piece of a thread's time, with lengths in ns.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Runs(u64),
    /// So much stolen in a stay of so much more.
    Stolen(u64, u64),
    /// Runs, waits for storage, could run, runs.
    Major(u64, u64, u64, u64),
    /// Runs, another has the CPU, runs.
    Minor(u64, u64, u64),
    /// Runs in a call, has a fault in it, waits for a lock there.
    Call(u64, u64, u64),
    /// Waits, could run.
    Waits(usize, u64, u64),
}

fn nonzero(account: &Account) -> Vec<(Category, u64)> {
    account.iter().filter(|(_, time)| time.0 > 0).map(|(category, time)| (category, time.0)).collect()
}

fn any_piece() -> impl Strategy<Value = Piece> {
    let length = || 0u64..1_000_000;
    prop_oneof![
        length().prop_map(Piece::Runs),
        (length(), length()).prop_map(|(stolen, runs)| Piece::Stolen(stolen, runs)),
        (length(), length(), length(), length()).prop_map(|(a, b, c, d)| Piece::Major(a, b, c, d)),
        (length(), length(), length()).prop_map(|(a, b, c)| Piece::Minor(a, b, c)),
        (length(), length(), length()).prop_map(|(a, b, c)| Piece::Call(a, b, c)),
        (0..OffCpuReason::ALL.len(), length(), length()).prop_map(|(reason, a, b)| Piece::Waits(reason, a, b)),
    ]
}

const KEY: ProcessKey = ProcessKey { pid: 7, start: Nanos(3) };

/// The recording of a thread, and the truth.
struct Story {
    tables: Tables,
    truth: Account,
    now: u64,
    run_time: u64,
}

impl Story {
    fn new(tid: u32, began: u64) -> Self {
        let fork = Fork {
            ts: Nanos(began),
            parent_pid: 1,
            parent_start: Nanos(1),
            pid: KEY.pid,
            start: KEY.start,
            tid,
            thread: true,
        };
        let tables = Tables { forks: vec![fork], ..Tables::default() };
        Self { tables, truth: Account::default(), now: began, run_time: 0 }
    }

    fn tid(&self) -> u32 {
        self.tables.forks[0].tid
    }

    fn run(&mut self, time: u64, category: Category) {
        self.truth.add(category, Nanos(time));
        self.now += time;
        self.run_time += time;
    }

    fn off(&mut self, reason: OffCpuReason, waits: u64, runnable: u64) {
        let is_whole = matches!(reason, OffCpuReason::Runnable | OffCpuReason::Throttled);
        self.tables.off_cpu.push(OffCpu {
            ts: Nanos(self.now),
            duration: Nanos(waits + runnable),
            pid: KEY.pid,
            start: KEY.start,
            tid: self.tid(),
            reason,
            runnable: Nanos(if is_whole { waits + runnable } else { runnable }),
            woken: None,
            waker_pid: None,
            waker_tid: None,
            syscall: 0,
            stack: None,
        });
        let tail = if is_whole { Category::of_wait(reason) } else { Category::Runnable };
        self.truth.add(Category::of_wait(reason), Nanos(waits));
        self.truth.add(tail, Nanos(runnable));
        self.now += waits + runnable;
    }

    fn fault(&mut self, kind: FaultKind, began: u64) {
        self.tables.faults.push(Fault {
            duration: Some(Nanos(self.now - began)),
            start: KEY.start,
            tid: self.tid(),
            kind,
            ..fault(began, 0)
        });
    }

    fn tell(&mut self, piece: Piece) {
        let began = self.now;
        match piece {
            Piece::Runs(time) => self.run(time, Category::OnCpu),
            Piece::Stolen(stolen, runs) => {
                self.off(OffCpuReason::Stolen, stolen, 0);
                self.run(runs, Category::OnCpu);
            }
            Piece::Major(before, waits, runnable, after) => {
                self.run(before, Category::MajorFault);
                self.off(OffCpuReason::FaultIo, waits, runnable);
                self.run(after, Category::MajorFault);
                self.fault(FaultKind::Major, began);
            }
            Piece::Minor(before, waits, after) => {
                self.run(before, Category::MinorFault);
                self.off(OffCpuReason::Runnable, waits, 0);
                self.run(after, Category::MinorFault);
                self.fault(FaultKind::Minor, began);
            }
            Piece::Call(runs, fault, waits) => {
                self.run(runs, Category::MemoryCall);
                let at = self.now;
                self.run(fault, Category::MinorFault);
                self.fault(FaultKind::Minor, at);
                self.off(OffCpuReason::Kernel, waits, 0);
                self.tables.memory_calls.push(MemoryCall {
                    duration: Nanos(self.now - began),
                    start: KEY.start,
                    tid: self.tid(),
                    ..memory_call(MemoryCallKind::Munmap, began, 0, 0)
                });
            }
            Piece::Waits(reason, waits, runnable) => match OffCpuReason::ALL[reason] {
                OffCpuReason::Stolen => self.run(waits, Category::OnCpu),
                reason => self.off(reason, waits, runnable),
            },
        }
    }

    fn end(&mut self) {
        self.tables.exits.push(Exit {
            ts: Nanos(self.now),
            pid: KEY.pid,
            start: KEY.start,
            tid: self.tid(),
            last: false,
            status: None,
            signal: None,
            min_flt: 0,
            maj_flt: 0,
            utime: Nanos(0),
            stime: Nanos(0),
            run_time: Some(Nanos(self.run_time)),
            read_bytes: slowpath_tables::Bytes(0),
            running: false,
        });
    }
}

fn story(tid: u32, began: u64, pieces: &[Piece]) -> Story {
    let mut story = Story::new(tid, began);
    pieces.iter().for_each(|piece| story.tell(*piece));
    story.end();
    story
}

/// Rows in an order that has nothing to do with their time.
fn shuffled<R>(rows: Vec<R>) -> Vec<R> {
    let (mut odd, mut even) = (Vec::new(), Vec::new());
    for (number, row) in rows.into_iter().rev().enumerate() {
        if number % 2 == 0 { even.push(row) } else { odd.push(row) }
    }
    odd.append(&mut even);
    odd
}

proptest! {
    #[test]
    fn a_consistent_recording_is_explained_to_the_nanosecond_whatever_the_order_of_its_rows(
        first in proptest::collection::vec(any_piece(), 0..30),
        second in proptest::collection::vec(any_piece(), 0..30),
        third in proptest::collection::vec(any_piece(), 0..30),
    ) {
        let first = story(8, 1000, &first);
        // The same thread id once more, after the first has ended; and another one at the same time.
        let again = story(8, first.now + 10, &second);
        let other = story(9, 1500, &third);
        let truth = [(8, 1000, first.truth), (8, first.now + 10, again.truth), (9, 1500, other.truth)];
        let mut tables = first.tables;
        tables.append(again.tables);
        tables.append(other.tables);
        tables.off_cpu = shuffled(tables.off_cpu);
        tables.faults = shuffled(tables.faults);
        tables.memory_calls = shuffled(tables.memory_calls);
        tables.forks = shuffled(tables.forks);
        tables.exits = shuffled(tables.exits);
        tables.manifest = with_waits();
        let found = ledger(&tables).unwrap().unwrap();
        prop_assert_eq!(found.threads.len(), 3);
        for (tid, began, truth) in truth {
            let thread = found.threads.iter().find(|one| (one.tid, one.began.0) == (tid, began)).unwrap();
            prop_assert_eq!(thread.unexplained, Some(0));
            prop_assert_eq!(nonzero(&thread.account), nonzero(&truth));
            prop_assert_eq!(thread.account.total(), thread.wall());
        }
    }

    #[test]
    fn an_interval_that_is_missing_is_unexplained(
        pieces in proptest::collection::vec(any_piece(), 1..30),
        which in any::<prop::sample::Index>(),
    ) {
        let mut story = story(8, 1000, &pieces);
        // Inside of a fault or a call the time would be taken for theirs.
        story.tables.faults.clear();
        story.tables.memory_calls.clear();
        if story.tables.off_cpu.is_empty() {
            return Ok(());
        }
        let at = which.index(story.tables.off_cpu.len());
        let missing = story.tables.off_cpu.remove(at).duration;
        story.tables.manifest = with_waits();
        let found = ledger(&story.tables).unwrap().unwrap();
        prop_assert_eq!(found.threads[0].unexplained, Some(missing.0 as i64));
    }

    #[test]
    fn whatever_rows_say_categories_and_the_unexplained_make_the_wall_time(
        rows in proptest::collection::vec((0usize..12, 0u64..3000, 0u64..2000, 0u64..2000), 0..30),
        run_time in 0u64..4000,
    ) {
        let mut story = Story::new(8, 1000);
        story.now = 2500;
        story.run_time = run_time;
        for (reason, ts, duration, runnable) in rows {
            let mut row = Story::new(8, ts);
            row.off(OffCpuReason::ALL[reason], duration, 0);
            row.tables.off_cpu[0].runnable = Nanos(runnable);
            row.fault(FaultKind::Minor, ts);
            row.tables.forks.clear();
            story.tables.append(row.tables);
        }
        story.end();
        story.tables.manifest = with_waits();
        let found = ledger(&story.tables).unwrap().unwrap();
        let thread = &found.threads[0];
        let sum = thread.account.total().0 as i64 + thread.unexplained.unwrap();
        prop_assert_eq!(sum, 1500);
        let off: u64 = thread.account.iter().filter(|(category, _)| category.is_idle()).map(|(_, time)| time.0).sum();
        prop_assert!(off <= 1500);
        story.tables.exits.iter_mut().for_each(|exit| exit.run_time = None);
        let found = ledger(&story.tables).unwrap().unwrap();
        prop_assert_eq!((found.threads[0].account.total(), found.threads[0].unexplained), (Nanos(1500), None));
    }
}

fn with_waits() -> slowpath_recording::Manifest {
    let text = "== manifest\n{\"probes\": [{\"name\": \"off_cpu\", \"state\": \"attached\"}]}\n";
    Tables::from_text(text).unwrap().manifest
}
