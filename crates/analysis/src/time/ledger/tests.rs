//! Ledgers of recordings as text.

use super::*;

/// Two processes. 7 was executed and has a thread of its own; 9 ran already.
const RECORDED: &str = r#"
== manifest
{"started": 100, "ended": 1100, "losses": {"off_cpu": 2, "writer_behind.off_cpu": 1},
 "probes": [{"name": "off_cpu", "state": "attached"}]}
== execs
ts  present pid start filename run_time
100 false   7   1     /bin/a   40
100 true    9   2     /bin/b   5000
== forks
ts  parent_pid parent_start pid start tid thread
200 7          1            7   1     8   true
== thread_counters
ts   pid start tid end   run_time utime stime run_delay name
101  7   1     7   false 41       0     0     10        a
90   9   2     9   false 5000     0     0     -         b
95   9   2     10  false 100      0     0     -         pool
700  7   1     8   true  120      0     0     20        worker
901  7   1     7   true  341      0     0     70        a
1090 9   2     9   true  5000     0     0     -         b
1090 9   2     10  true  350      0     0     -         pool
== exits
ts   pid start tid last  run_time running
680  7   1     8   false 100      false
880  7   1     7   true  320      false
1100 9   2     9   false 5000     true
== off_cpu
ts  duration pid start tid reason   runnable
201 19       7   1     8   runnable 19
300 341      7   1     8   futex    1
500 250      7   1     7   timer    30
300 250      7   1     7   other_io 30
90  1000     9   2     9   poll     0
95  745      9   2     10  futex    0
== faults
ts  duration pid start tid kind
220 30       7   1     8   minor
"#;

fn recorded(text: &str) -> Ledger {
    ledger(&Tables::from_text(text).unwrap()).unwrap().unwrap()
}

fn thread(ledger: &Ledger, tid: u32) -> &ThreadLedger {
    ledger.threads.iter().find(|thread| thread.tid == tid).unwrap()
}

fn nonzero(account: &Account) -> Vec<(Category, u64)> {
    account.iter().filter(|(_, time)| time.0 > 0).map(|(category, time)| (category, time.0)).collect()
}

#[test]
fn the_rows_of_a_thread_and_what_is_unexplained_add_up_to_its_wall_time() {
    let found = recorded(RECORDED);
    let worker = thread(&found, 8);
    assert_eq!((worker.name.as_deref(), worker.began, worker.wall()), (Some("worker"), Nanos(200), Nanos(500)));
    assert_eq!(
        nonzero(&worker.account),
        [(Category::OnCpu, 90), (Category::MinorFault, 30), (Category::Lock, 340), (Category::Runnable, 20)]
    );
    assert_eq!((worker.on_cpu, worker.unexplained, worker.split_by), (Some(Nanos(120)), Some(20), SplitBy::Nothing));
    assert_eq!(worker.runnable_by_kernel, Some(Nanos(20)));
    // The main thread: its rows overlap, and the earlier one has the time.
    let main = thread(&found, 7);
    assert_eq!((main.began, main.wall(), main.on_cpu), (Nanos(101), Nanos(800), Some(Nanos(300))));
    assert_eq!(
        nonzero(&main.account),
        [(Category::OnCpu, 300), (Category::OtherIo, 220), (Category::Timer, 200), (Category::Runnable, 30)]
    );
    assert_eq!(main.unexplained, Some(50));
    assert_eq!((found.lost_intervals, found.incomplete_threads, found.has_memory_calls), (3, 0, false));
}

#[test]
fn threads_that_ran_already_have_their_own_base_and_one_that_never_ran_has_no_time_on_the_cpu() {
    let found = recorded(RECORDED);
    let (idle, pool) = (thread(&found, 9), thread(&found, 10));
    assert_eq!((nonzero(&idle.account), idle.unexplained), (vec![(Category::Events, 1000)], Some(0)));
    assert_eq!(
        (pool.on_cpu, pool.account.get(Category::Lock), pool.unexplained),
        (Some(Nanos(250)), Nanos(745), Some(0))
    );
    // Without the rows of counters the base of a process is that of all its threads.
    let from = RECORDED.find("== thread_counters").unwrap();
    let to = RECORDED.find("== exits").unwrap();
    let old = recorded(&format!("{}{}", &RECORDED[..from], &RECORDED[to..]));
    assert_eq!((old.threads.len(), old.incomplete_threads), (3, 0));
    assert_eq!((thread(&old, 8).on_cpu, thread(&old, 8).wall()), (Some(Nanos(100)), Nanos(480)));
    assert_eq!(thread(&old, 9).on_cpu, Some(Nanos(0)));
}

#[test]
fn without_a_counter_the_waits_leave_the_time_on_the_cpu_and_nothing_is_called_explained() {
    let text = RECORDED.replace("680  7   1     8   false 100 ", "680  7   1     8   false -   ");
    let from = text.find("== thread_counters").unwrap();
    let to = text.find("== exits").unwrap();
    let found = recorded(&format!("{}{}", &text[..from], &text[to..]));
    let worker = thread(&found, 8);
    // 480 less 360 off the CPU; 30 of that are a fault.
    assert_eq!((worker.on_cpu, worker.unexplained, worker.account.get(Category::OnCpu)), (None, None, Nanos(90)));
    assert_eq!(worker.account.total(), worker.wall());
    let process = found.processes.iter().find(|one| one.process.pid == 7).unwrap();
    assert_eq!((process.unchecked_threads, process.threads), (1, 2));
    assert_eq!(process.unexplained, thread(&found, 7).unexplained);
}

#[test]
fn the_busiest_come_first_and_processes_are_sums_of_their_threads() {
    let found = recorded(RECORDED);
    assert_eq!(found.threads.iter().map(|thread| thread.tid).collect::<Vec<_>>(), [7, 10, 8, 9]);
    let first = &found.processes[0];
    assert_eq!((first.process.pid, first.threads, first.thread_time), (7, 2, Nanos(1300)));
    assert_eq!((first.began, first.ended, first.unexplained), (Nanos(101), Nanos(901), Some(70)));
    assert_eq!(first.account.get(Category::Runnable), Nanos(50));
    let all: Nanos = found.threads.iter().filter(|one| one.process.pid == 7).map(|one| one.account.total()).sum();
    assert_eq!(first.account.total(), all);
}

#[test]
fn what_was_not_recorded_has_a_reason_and_a_remedy() {
    assert_eq!(ledger(&Tables::from_text("== exits\nts pid start tid\n5 7 1 7\n").unwrap()), Ok(None));
    assert!(not_asked_for().remedy.contains("--off-cpu"));
    let failed = "== manifest\n{\"probes\": [{\"name\": \"off_cpu\", \"state\": \"unavailable\"}]}\n";
    let failed = ledger(&Tables::from_text(failed).unwrap()).unwrap_err();
    assert!(failed.reason.contains("could not") && failed.what == not_asked_for().what, "{failed:?}");
    let killed = "== manifest\n{\"probes\": [{\"name\": \"off_cpu\", \"state\": \"attached\"}]}\n\
                  == forks\nts pid start tid thread\n1 7 1 8 true\n";
    let killed = ledger(&Tables::from_text(killed).unwrap()).unwrap_err();
    assert!(killed.reason.contains("no thread"), "{killed:?}");
}

#[test]
fn stolen_time_is_added_to_the_counter_that_leaves_it_out() {
    let stolen = "200 100 9 2 10 stolen 0\n";
    let text = RECORDED
        .replace("== faults", &format!("{stolen}== faults"))
        .replace("1090 9   2     10  true  350 ", "1090 9   2     10  true  250 ");
    let found = recorded(&text);
    let pool = thread(&found, 10);
    assert_eq!(nonzero(&pool.account), [(Category::OnCpu, 150), (Category::Lock, 745), (Category::Stolen, 100)]);
    assert_eq!(pool.unexplained, Some(0));
}

#[test]
fn the_interval_of_a_process_is_that_of_a_sum() {
    let part = |split_by, interval: Option<(u64, u64)>, kernel: u64| {
        let mut account = Account::default();
        account.add(Category::Kernel, Nanos(kernel));
        let kernel_interval = interval.map(|(low, high)| (Nanos(low), Nanos(high)));
        ThreadLedger { account, split_by, kernel_interval, ..recorded(RECORDED).threads[0].clone() }
    };
    let by_samples = [
        part(SplitBy::Samples, Some((970, 1040)), 1000),
        part(SplitBy::Samples, Some((60, 130)), 100),
        part(SplitBy::Nothing, None, 0),
    ];
    assert_eq!(kernel_interval(&by_samples, Nanos(1100)), Some((Nanos(1050), Nanos(1150))));
    let mixed = [by_samples[0].clone(), part(SplitBy::KernelCounters, None, 5)];
    assert_eq!(kernel_interval(&mixed, Nanos(1005)), None);
}
