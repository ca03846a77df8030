//! Paths of recordings as text of which the answer is known, and of random ones.

use super::*;
use crate::time::ledger::Category;
use proptest::prelude::*;
use slowpath_tables::{Exit, Fork, ProcessKey};
use std::fmt::Write as _;

/// The begin of every recording here: `a` runs from 100 on, and is ready at 1000.
const LAUNCH: &str = r#"
== manifest
{"started": 90, "ended": 1100, "launch": {"released": 100, "ready": 1000, "ready_when": "exit", "outcome": "ready"},
 "probes": [{"name": "off_cpu", "state": "attached"}]}
== execs
ts  pid start filename run_time
100 7   1     /bin/a   0
== exits
ts   pid start tid last running
1000 7   1     7   true false
"#;

fn found(rows: &str) -> CriticalPath {
    critical_path(&Tables::from_text(&format!("{LAUNCH}{rows}")).unwrap()).unwrap()
}

/// Thread, begin, end, what it did, and who ended that.
fn steps(path: &CriticalPath) -> Vec<(u32, u64, u64, &'static str)> {
    let words = |step: &Step| match (step.category, step.ended_by) {
        (None, _) => "nothing known",
        (Some(category), None | Some(EndedBy::Interrupt)) => category.words(),
        (Some(_), Some(EndedBy::NotRecorded)) => "for an outsider",
        (Some(_), Some(EndedBy::Contradicted)) => "contradicted",
        (Some(_), Some(EndedBy::NotOver)) => "not over",
    };
    path.steps.iter().map(|step| (step.tid, step.from.0, step.to.0, words(step))).collect()
}

fn times(path: &CriticalPath) -> Vec<(Category, u64)> {
    path.account.iter().filter(|(_, time)| time.0 > 0).map(|(category, time)| (category, time.0)).collect()
}

const RAN: &str = "user or kernel";

#[test]
fn through_a_pipe_the_path_goes_back_and_forth_and_through_a_fork_to_the_parent() {
    let path = found(
        "
== forks
ts  parent_pid parent_start pid start tid thread
200 7          1            9   200   9   false
== exits
ts  pid start tid last
990 9   200   9   true
== off_cpu
ts  duration pid start tid reason         runnable waker_pid waker_tid
199 21       9   200   9   runnable       21       -         -
250 100      7   1     7   pipe_or_socket 10       9         9
345 60       9   200   9   pipe_or_socket 5        7         7
410 150      7   1     7   pipe_or_socket 0        9         9
600 390      9   200   9   pipe_or_socket 90       7         7
",
    );
    assert_eq!(
        steps(&path),
        [
            (7, 100, 200, RAN),
            (9, 200, 220, "runnable"),
            (9, 220, 340, RAN),
            (7, 340, 350, "runnable"),
            (7, 350, 400, RAN),
            (9, 400, 405, "runnable"),
            (9, 405, 560, RAN),
            (7, 560, 1000, RAN),
        ]
    );
    assert_eq!(times(&path), [(Category::OnCpu, 865), (Category::Runnable, 35)]);
    assert_eq!((path.ends_with, path.is_ready, path.unexplained), (EndsWith::Exit, true, Nanos(0)));
    let shares: Vec<_> = path.threads.iter().map(|one| (one.tid, one.time().0)).collect();
    assert_eq!(shares, [(7, 600), (9, 300)]);
}

#[test]
fn behind_a_lock_is_what_its_holder_did_and_a_timer_is_its_own_cause() {
    let path = found(
        "
== forks
ts  parent_pid parent_start pid start tid thread
250 7          1            7   1     8   true
== exits
ts  pid start tid last
990 7   1     8   false
== off_cpu
ts  duration pid start tid reason runnable waker_pid waker_tid
310 300      7   1     7   futex  10       7         8
300 200      7   1     8   timer  20       -         -
",
    );
    assert_eq!(
        steps(&path),
        [
            (7, 100, 250, RAN),
            (8, 250, 300, RAN),
            (8, 300, 480, "timers"),
            (8, 480, 500, "runnable"),
            (8, 500, 600, RAN),
            (7, 600, 610, "runnable"),
            (7, 610, 1000, RAN),
        ]
    );
    assert_eq!(path.steps[2].ended_by, Some(EndedBy::Interrupt));
}

#[test]
fn who_woke_a_thread_is_asked_at_the_moment_of_the_wake_up_and_not_when_it_stood_in_a_run_queue() {
    let rows = "
== forks
ts  parent_pid parent_start pid start tid thread
250 7          1            7   1     8   true
== exits
ts  pid start tid last
990 7   1     8   false
== off_cpu
ts  duration pid start tid reason runnable woken waker_pid waker_tid
310 340      7   1     7   futex  10       600   7         8
605 300      7   1     8   timer  20       -     -         -
";
    // The waker sleeps again when the interrupt of the other CPU comes.
    let path = found(rows);
    assert_eq!(steps(&path), [(7, 100, 250, RAN), (8, 250, 600, RAN), (7, 600, 650, "runnable"), (7, 650, 1000, RAN)]);
    let path = found(&rows.replace("600 ", "-   "));
    assert!(path.steps.iter().any(|step| step.ended_by == Some(EndedBy::Contradicted)), "{:?}", path.steps);
}

#[test]
fn a_parent_that_waits_for_its_child_waits_for_what_the_child_waits_for() {
    let path = found(
        "
== forks
ts  parent_pid parent_start pid start tid thread
300 7          1            9   300   9   false
== thread_counters
ts  pid start tid end  run_time name
702 9   300   9   true 0        child
== exits
ts  pid start tid last
690 9   300   9   true
== off_cpu
ts  duration pid start tid reason   runnable waker_pid waker_tid
310 395      7   1     7   child    5        9         9
400 100      9   300   9   fault_io 10       -         -
== faults
ts  duration pid start tid kind
350 20       9   300   9   minor
395 110      9   300   9   major
150 10       9   300   9   minor
800 -        7   1     7   minor
== memory_calls
ts  duration pid start tid call
340 40       9   300   9   mmap
",
    );
    assert_eq!(
        steps(&path),
        [
            (7, 100, 300, RAN),
            (9, 300, 400, RAN),
            (9, 400, 490, "major faults"),
            (9, 490, 500, "runnable"),
            (9, 500, 700, RAN),
            (7, 700, 705, "runnable"),
            (7, 705, 1000, RAN),
        ]
    );
    assert_eq!(
        times(&path),
        [
            (Category::OnCpu, 745),
            (Category::MinorFault, 20),
            (Category::MajorFault, 100),
            (Category::MemoryCall, 20),
            (Category::Runnable, 15),
        ]
    );
    assert_eq!(path.threads.iter().map(|one| one.name.as_deref()).collect::<Vec<_>>(), [None, Some("child")]);
}

#[test]
fn a_wait_that_nobody_recorded_ended_stays_and_says_so() {
    let path = found(
        "
== off_cpu
ts  duration pid start tid reason   runnable waker_pid waker_tid
200 100      7   1     7   futex    0        4242      4242
400 100      7   1     7   other_io 0        -         -
600 100      7   1     7   futex    0        7         7
",
    );
    assert_eq!(
        steps(&path),
        [
            (7, 100, 200, RAN),
            (7, 200, 300, "for an outsider"),
            (7, 300, 400, RAN),
            (7, 400, 500, "other I/O"),
            (7, 500, 600, RAN),
            (7, 600, 700, "contradicted"),
            (7, 700, 1000, RAN),
        ]
    );
}

#[test]
fn where_ready_is_not_the_end_the_thread_that_ran_last_before_it_is_the_one() {
    let rows = "
== forks
ts  parent_pid parent_start pid start tid thread
250 7          1            7   1     8   true
== exits
ts   pid start tid last
1050 7   1     8   false
== off_cpu
ts  duration pid start tid reason runnable waker_pid waker_tid
900 150      7   1     7   poll   0        -         -
990 50       7   1     8   poll   0        -         -
";
    let text =
        format!("{LAUNCH}{rows}").replace("\"exit\"", "\"line:x\"").replace("1000 7   1     7", "1080 7   1     7");
    let path = critical_path(&Tables::from_text(&text).unwrap()).unwrap();
    assert_eq!(steps(&path), [(7, 100, 250, RAN), (8, 250, 990, RAN), (8, 990, 1000, "not over")]);
    assert_eq!(path.ends_with, EndsWith::RanLast);
}

#[test]
fn before_the_program_runs_and_after_its_end_nothing_is_known() {
    let text = format!("{LAUNCH}== off_cpu\nts duration pid start tid reason runnable\n200 10 7 1 7 timer 0\n")
        .replace("100 7   1     /bin/a", "130 7   1     /bin/a")
        .replace("1000 7   1     7", "960 7   1     7");
    let path = critical_path(&Tables::from_text(&text).unwrap()).unwrap();
    let steps = steps(&path);
    assert_eq!((steps[0], steps[4]), ((7, 100, 130, "nothing known"), (7, 960, 1000, "nothing known")));
    assert_eq!(path.unexplained, Nanos(70));
}

#[test]
fn without_a_launch_or_waits_there_is_no_path() {
    assert_eq!(critical_path(&Tables::from_text(LAUNCH).unwrap()), None);
    let waits = "== off_cpu\nts duration pid start tid reason runnable\n200 10 7 1 7 timer 0\n";
    let without = LAUNCH.replace(
        "\"launch\": {\"released\": 100, \"ready\": 1000, \"ready_when\": \"exit\", \"outcome\": \"ready\"},",
        "",
    );
    assert_eq!(critical_path(&Tables::from_text(&format!("{without}{waits}")).unwrap()), None);
}

#[test]
fn samples_on_the_path_tell_user_from_kernel_time_and_others_do_not() {
    let mut rows = "
== off_cpu
ts  duration pid start tid reason runnable
200 100      7   1     7   timer  0
== cpu_samples
ts pid start tid kernel
"
    .to_owned();
    for ts in 0..40 {
        // Writing into a string does not fail.
        let _ = writeln!(rows, "{} 7 1 7 {}\n{} 7 1 99 true", 400 + ts, ts % 4 == 0, 400 + ts);
    }
    let path = found(&rows);
    assert_eq!((path.split_by, path.account.get(Category::Kernel)), (SplitBy::Samples, Nanos(200)));
    assert_eq!(times(&path), [(Category::User, 600), (Category::Kernel, 200), (Category::Timer, 100)]);
    assert_eq!(path.threads[0].account.get(Category::OnCpu), Nanos(800));
}

const KEY: ProcessKey = ProcessKey { pid: 7, start: Nanos(1) };

fn fork(ts: u64, tid: u32) -> Fork {
    let (parent_pid, parent_start) = (KEY.pid, KEY.start);
    Fork { ts: Nanos(ts), parent_pid, parent_start, pid: KEY.pid, start: KEY.start, tid, thread: true }
}

fn exit(ts: u64, tid: u32) -> Exit {
    Exit {
        ts: Nanos(ts),
        pid: KEY.pid,
        start: KEY.start,
        tid,
        last: false,
        status: None,
        signal: None,
        min_flt: 0,
        maj_flt: 0,
        utime: Nanos(0),
        stime: Nanos(0),
        run_time: None,
        read_bytes: slowpath_tables::Bytes(0),
        running: true,
    }
}

fn off(ts: u64, duration: u64, tid: u32, reason: OffCpuReason, runnable: u64, waker: Option<u32>) -> OffCpu {
    OffCpu {
        ts: Nanos(ts),
        duration: Nanos(duration),
        pid: KEY.pid,
        start: KEY.start,
        tid,
        reason,
        runnable: Nanos(runnable),
        woken: None,
        waker_pid: waker.map(|_| KEY.pid),
        waker_tid: waker,
        syscall: 0,
        stack: None,
    }
}

/// Threads 7 to 10 of one process, of a launch from `from` to `to`, ready with a line.
fn recording(from: u64, to: u64, off_cpu: Vec<OffCpu>) -> Tables {
    let mut tables = Tables::from_text(&LAUNCH.replace("\"exit\"", "\"line:x\"")).unwrap();
    if let Some(launch) = &mut tables.manifest.launch {
        (launch.released, launch.ready) = (Nanos(from), Some(Nanos(to)));
    }
    tables.execs[0].ts = Nanos(from);
    tables.forks = (8..=10).map(|tid| fork(from, tid)).collect();
    tables.exits = (7..=10).map(|tid| exit(to + 10, tid)).collect();
    tables.off_cpu = off_cpu;
    tables
}

/// Threads that take turns, and what the one whose turn it is does.
struct Turns {
    now: u64,
    holder: u32,
    /// Thread, begin, end, what it did.
    truth: Vec<(u32, u64, u64, Category)>,
    /// Since when each of the threads waits for its turn.
    since: [u64; 4],
    rows: Vec<OffCpu>,
}

impl Turns {
    fn does(&mut self, time: u64, category: Category) {
        let until = self.now + time;
        match self.truth.last_mut() {
            _ if time == 0 => {}
            Some(last) if (last.0, last.3) == (self.holder, category) => last.2 = until,
            _ => self.truth.push((self.holder, self.now, until, category)),
        }
        self.now = until;
    }

    fn sleeps(&mut self, time: u64, runnable: u64) {
        if time + runnable > 0 {
            self.rows.push(off(self.now, time + runnable, self.holder, OffCpuReason::Timer, runnable, None));
        }
        self.does(time, Category::Timer);
        self.does(runnable, Category::Runnable);
    }

    /// Of the delay until the other one runs, `unqueued` at most are over when it stands in a run queue.
    fn hands_over(&mut self, to: u32, delay: u64, unqueued: Option<u64>) {
        let given = self.now;
        if to == self.holder {
            return;
        }
        let since = std::mem::replace(&mut self.since[(self.holder - 7) as usize], given);
        assert!(since <= given);
        let since = self.since[(to - 7) as usize];
        let runnable = delay - unqueued.unwrap_or(0).min(delay);
        let row = off(since, given - since + delay, to, OffCpuReason::Futex, runnable, Some(self.holder));
        self.rows.push(OffCpu { woken: unqueued.map(|_| Nanos(given)), ..row });
        self.holder = to;
        self.does(delay, Category::Runnable);
    }
}

proptest! {
    #[test]
    fn the_path_is_whose_turn_it_was_where_threads_take_turns(
        all in proptest::collection::vec(
            (1u64..1000, 0u64..1000, 0u64..100, 7u32..11, 0u64..100, proptest::option::of(0u64..120)), 1..40,
        ),
    ) {
        let mut turns = Turns { now: 1000, holder: 7, truth: Vec::new(), since: [1000; 4], rows: Vec::new() };
        for (runs, sleeps, runnable, next, delay, unqueued) in all {
            turns.does(runs, Category::OnCpu);
            turns.sleeps(sleeps, runnable);
            // It runs when it wakes another one, and runs when it is woken.
            turns.does(1, Category::OnCpu);
            turns.hands_over(next, delay, unqueued);
            turns.does(1, Category::OnCpu);
        }
        let Turns { now, holder, truth, since, mut rows } = turns;
        for tid in (7..=10).filter(|tid| *tid != holder) {
            let since = since[(tid - 7) as usize];
            rows.push(off(since, now - since, tid, OffCpuReason::Futex, 0, None));
        }
        let path = critical_path(&recording(1000, now, rows)).unwrap();
        let steps: Vec<_> =
            path.steps.iter().map(|step| (step.tid, step.from.0, step.to.0, step.category.unwrap())).collect();
        prop_assert_eq!(steps, truth);
    }

    #[test]
    fn whatever_rows_say_the_path_covers_the_launch_without_gaps_or_overlaps(
        rows in proptest::collection::vec(
            (
                900u64..3100, 0u64..600, 7u32..11, 0usize..12, 0u64..700, proptest::option::of(5u32..13),
                proptest::option::of(800u64..3300),
            ),
            1..60,
        ),
        begins in proptest::collection::vec(900u64..3000, 3),
    ) {
        let rows = rows.into_iter().map(|(ts, duration, tid, reason, runnable, waker, woken)| OffCpu {
            woken: woken.map(Nanos),
            ..off(ts, duration, tid, OffCpuReason::ALL[reason], runnable, waker)
        });
        let mut tables = recording(1000, 3000, rows.collect());
        for (fork, begin) in tables.forks.iter_mut().zip(begins) {
            fork.ts = Nanos(begin);
        }
        let path = critical_path(&tables).unwrap();
        prop_assert_eq!((path.steps[0].from, path.steps[path.steps.len() - 1].to), (Nanos(1000), Nanos(3000)));
        prop_assert!(path.steps.windows(2).all(|pair| pair[0].to == pair[1].from));
        prop_assert!(path.steps.iter().all(|step| step.from < step.to));
        prop_assert_eq!(path.account.total() + path.unexplained, Nanos(2000));
        let of_threads: Nanos = path.threads.iter().map(ThreadOnPath::time).sum();
        prop_assert_eq!(of_threads, Nanos(2000));
    }
}

#[test]
fn time_that_a_hypervisor_took_is_not_time_that_the_thread_ran() {
    let path = found(
        "
== off_cpu
ts  duration pid start tid reason   runnable waker_pid waker_tid
400 100      7   1     7   stolen   0        -         -
600 50       7   1     7   runnable 50       -         -
",
    );
    assert_eq!(times(&path), [(Category::OnCpu, 750), (Category::Runnable, 50), (Category::Stolen, 100)]);
    assert_eq!(path.unexplained, Nanos(0));
}
