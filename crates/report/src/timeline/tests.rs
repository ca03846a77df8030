//! Timelines of recordings as text: what a page reads of them is what the ledger adds up.

use super::states::OWN_STATES;
use super::*;
use crate::columns::tests::{bytes, numbers};
use slowpath_analysis::time::ledger::{Category, ledger};
use slowpath_tables::{OffCpuReason, ProcessKey};

/// A launch of two processes. The child's thread is woken by the parent's; the parent waits for storage in a major fault.
const RECORDED: &str = r#"
== manifest
{"started": 90, "ended": 1100, "probes": [{"name": "off_cpu", "state": "attached"}],
 "launch": {"released": 100, "ready": 900, "ready_when": "exit", "outcome": "ready"},
 "devices": [{"dev": 8388608, "name": "vda", "mount_point": "/", "fs": "ext4", "read_ahead_kb": 128, "lab": false}]}
== execs
ts  present pid start parent_pid filename run_time
100 false   7   1     1          /bin/a   40
310 false   9   300   7          /bin/</script> 0
== forks
ts  parent_pid parent_start pid start tid thread
200 7          1            7   1     8   true
300 7          1            9   300   9   false
== thread_counters
ts   pid start tid end   run_time utime stime run_delay name
101  7   1     7   false 41       0     0     10        a
700  7   1     8   true  120      0     0     20        worker
901  7   1     7   true  341      0     0     70        a
800  9   300   9   true  200      0     0     0         child
== exits
ts   pid start tid last  run_time running
680  7   1     8   false 100      false
880  7   1     7   true  320      false
790  9   300   9   true  180      false
== first_waits
ts  pid start waited
400 9   300   300
== off_cpu
ts  duration pid start tid reason   runnable woken waker_pid waker_tid
201 19       7   1     8   runnable 19       -     -         -
300 341      7   1     8   futex    1        -     7         7
400 300      9   300   9   pipe_or_socket 20 675  7         8
500 250      7   1     7   timer    30       -     -         -
310 20       7   1     7   fault_io 5        -     -         -
120 7        7   1     7   stolen   0        -     -         -
== faults
ts  duration pid start tid kind
220 30       7   1     8   minor
305 40       7   1     7   major
== memory_calls
ts  duration pid start tid call
760 30       7   1     7   mmap
== block_io
ts  latency dev sector bytes read pid
311 10 8388608 0 4096 true 7
315 12 8388608 8 8192 true 7
340 5  8388608 8 4096 false 7
999 -  8388608 8 4096 false 7
"#;

fn timeline(text: &str) -> PageTimeline {
    of_tables(&Tables::from_text(text).unwrap()).unwrap()
}

/// The spans of every line: state and length.
fn spans(page: &PageTimeline) -> Vec<Vec<(String, u64)>> {
    let states = bytes(&page.spans.states);
    let lengths = numbers(&page.spans.lengths);
    assert_eq!((states.len() as u64, lengths.len() as u64), (page.spans.count, page.spans.count));
    let mut all = states.iter().zip(lengths).map(|(state, length)| (page.states[usize::from(*state)].clone(), length));
    let counts = page.threads.iter().map(|line| line.spans).chain(page.devices.iter().map(|device| device.spans));
    let lines = counts.map(|count| all.by_ref().take(count as usize).collect()).collect();
    assert!(all.next().is_none(), "spans belong to a line");
    lines
}

fn sums(spans: &[(String, u64)]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (state, length) in spans {
        *sums.entry(state.clone()).or_default() += length;
    }
    sums
}

#[test]
fn the_states_of_a_thread_add_up_to_its_ledger_and_to_its_rows_of_off_cpu() {
    let tables = Tables::from_text(RECORDED).unwrap();
    let page = of_tables(&tables).unwrap();
    let spans = spans(&page);
    let ledger = ledger(&tables).unwrap().unwrap();
    assert_eq!(ledger.threads.len(), page.threads.len());
    for thread in &ledger.threads {
        let key = |line: &TimelineLine| {
            let process = &page.processes[line.process as usize];
            (ProcessKey { pid: process.pid, start: process.start }, line.tid)
        };
        let at = page.threads.iter().position(|line| key(line) == (thread.process, thread.tid)).unwrap();
        let line = &page.threads[at];
        let found = sums(&spans[at]);
        assert_eq!(found, line.times, "the times of a thread are those that are drawn");
        assert_eq!(found.values().sum::<u64>(), thread.wall().0);
        assert_eq!(u64::try_from(line.began_ns).unwrap() + page.zero.0, thread.began.0);
        let mut ran = thread.unexplained.unwrap();
        for (category, time) in thread.account.iter() {
            let name = &page.states[OWN_STATES.len() + category as usize];
            if matches!(category, Category::User | Category::Kernel | Category::OnCpu | Category::Stolen) {
                ran += i64::try_from(time.0).unwrap();
                assert!(!found.contains_key(name), "{name} has no place on a clock");
            } else {
                assert_eq!(found.get(name).copied().unwrap_or(0), time.0, "{name} of {}", thread.tid);
            }
        }
        assert_eq!(i64::try_from(found["running"]).unwrap(), ran, "of {}", thread.tid);
        // The rows themselves, which do not overlap here: a wait until its wake-up, and the run queue of all of them.
        let rows = || tables.off_cpu.iter().filter(|row| (row.process(), row.tid) == (thread.process, thread.tid));
        let queued = rows().map(|row| if row.reason == OffCpuReason::Stolen { 0 } else { row.runnable.0 }).sum::<u64>();
        assert_eq!(found.get("runnable").copied().unwrap_or(0), queued);
        for (reason, state) in [(OffCpuReason::Futex, "lock"), (OffCpuReason::Timer, "timer")] {
            let waited: u64 =
                rows().filter(|row| row.reason == reason).map(|row| (row.duration - row.runnable).0).sum();
            assert_eq!(found.get(state).copied().unwrap_or(0), waited, "{state} of {}", thread.tid);
        }
    }
}

#[test]
fn spans_are_in_the_order_of_time_and_processes_stand_before_their_children() {
    let page = timeline(RECORDED);
    let shown: Vec<_> = page.processes.iter().map(|one| (one.pid, one.parent, one.began_ns, &*one.name)).collect();
    assert_eq!(shown, [(7, None, 0, "a"), (9, Some(0), 200, "script>")]);
    let lines: Vec<_> = page.threads.iter().map(|line| (line.process, line.tid, line.began_ns)).collect();
    assert_eq!(lines, [(0, 7, 1), (0, 8, 100), (1, 9, 200)]);
    let worker: Vec<(String, u64)> = spans(&page).swap_remove(1);
    let worker: Vec<(&str, u64)> = worker.iter().map(|(state, length)| (&**state, *length)).collect();
    let first = [("running", 1), ("runnable", 19), ("minor_fault", 30), ("running", 50), ("lock", 340)];
    assert_eq!(worker[..5], first);
    assert_eq!(worker[5..], [("runnable", 1), ("running", 59)]);
}

#[test]
fn wake_ups_are_arrows_between_threads_of_the_page() {
    let page = timeline(RECORDED);
    let columns = [&page.wakes.gaps, &page.wakes.wakers, &page.wakes.woken].map(|text| numbers(text));
    // At 640 the main thread wakes the worker, at 675 the worker the child.
    assert_eq!((page.wakes.count, page.wakes.first_ns, page.wakes.left_out), (2, 540, 0));
    assert_eq!(columns, [vec![0, 35], vec![0, 1], vec![1, 2]]);
    let tables = Tables::from_text(RECORDED).unwrap();
    let found = ThreadStates::new(&tables);
    let mut numbers = PageNumbers::new(&tables, 3);
    (0..3).for_each(|number| numbers.thread[number] = Some(number as u32));
    let fewer = wakes::cut(&tables, &found, &numbers, 1);
    assert_eq!((fewer.count, fewer.left_out, fewer.first_ns), (1, 1, 540), "the one that ended the longest wait stays");
}

#[test]
fn a_device_is_busy_while_requests_are_in_flight() {
    let page = timeline(RECORDED);
    let device = &page.devices[0];
    assert_eq!((&*device.name, device.began_ns, device.requests, device.unfinished), ("vda (8:0)", 211, 3, 1));
    assert_eq!((device.read.0, device.written.0), (12_288, 4_096));
    let spans: Vec<(String, u64)> = spans(&page).pop().unwrap();
    let spans: Vec<(&str, u64)> = spans.iter().map(|(state, length)| (&**state, *length)).collect();
    assert_eq!(spans, [("reading", 16), ("idle", 13), ("writing", 5)]);
}

#[test]
fn milestones_say_when_the_launch_and_its_processes_began_and_ended() {
    use MilestoneKind::{Ended, Exec, FirstWait, Made, Ready, Released};
    let page = timeline(RECORDED);
    let shown: Vec<_> = page.milestones.iter().map(|one| (one.at_ns, one.kind, one.process, &*one.text)).collect();
    assert_eq!(
        shown,
        [
            (0, Released, None, ""),
            (0, Exec, Some(0), "/bin/a"),
            (200, Made, Some(1), ""),
            (210, Exec, Some(1), "/bin/</script>"),
            (300, FirstWait, Some(1), ""),
            (690, Ended, Some(1), ""),
            (780, Ended, Some(0), ""),
            (800, Ready, None, "exit"),
        ]
    );
}

#[test]
fn the_path_to_ready_has_every_moment_once() {
    let page = timeline(RECORDED);
    let tables = Tables::from_text(RECORDED).unwrap();
    let whole = slowpath_analysis::time::critical_path::critical_path(&tables).unwrap();
    let path = page.path.unwrap();
    assert_eq!((path.from_ns, path.to_ns, path.is_ready, path.left_out), (0, 800, true, 0));
    assert!(numbers(&path.gaps).iter().all(|gap| *gap == 0));
    assert_eq!(numbers(&path.lengths).iter().sum::<u64>(), 800);
    assert_eq!(path.count as usize, whole.steps.len());
    let tids: Vec<u32> = numbers(&path.threads).iter().map(|at| page.threads[*at as usize].tid).collect();
    assert_eq!(tids, whole.steps.iter().map(|step| step.tid).collect::<Vec<_>>());
    assert_eq!(bytes(&path.states).len(), whole.steps.len());
}

#[test]
fn without_waits_only_faults_and_memory_calls_are_known() {
    let from = RECORDED.find("== off_cpu").unwrap();
    let to = RECORDED.find("== faults").unwrap();
    let text = format!("{}{}", &RECORDED[..from], &RECORDED[to..]);
    let page = timeline(&text.replace(r#"{"name": "off_cpu", "state": "attached"}"#, ""));
    assert!(!page.has_waits && page.path.is_none());
    let worker: Vec<&str> = page.threads[1].times.keys().map(String::as_str).collect();
    assert_eq!(worker, ["minor_fault", "not_recorded"]);
}

#[test]
fn of_too_many_spans_short_ones_are_together_and_no_time_is_lost() {
    let tables = Tables::from_text(RECORDED).unwrap();
    let whole = of(&tables, u64::MAX, 10).unwrap();
    for most in [1, 6, 12, 20] {
        let page = of(&tables, most, 10).unwrap();
        let threads = page.threads.iter().map(|line| line.spans).sum::<u64>();
        assert!(threads <= most + 3, "{threads} spans of at most {most}");
        assert!(page.finest_ns > 0);
        for ((line, all), drawn) in page.threads.iter().zip(&whole.threads).zip(spans(&page)) {
            assert_eq!(line.times, all.times, "the times do not change");
            let drawn = sums(&drawn);
            assert_eq!(drawn.values().sum::<u64>(), all.times.values().sum::<u64>());
            for (state, time) in drawn.iter().filter(|(state, _)| *state != "several") {
                assert!(time <= &all.times[state], "{state}");
            }
        }
    }
    let fewer = of(&tables, u64::MAX, 2).unwrap();
    assert_eq!((fewer.threads.len(), fewer.other_threads), (2, 1));
}

#[test]
fn rows_without_sense_make_no_page_and_no_panic() {
    assert!(of_tables(&Tables::default()).is_none());
    let text = RECORDED.replace("300 7          1            9   300", "300 9          300          9   300");
    assert_eq!(timeline(&text).processes.len(), 2, "a process that made itself");
    let late = RECORDED.replace("\"released\": 100", "\"released\": 18446744073709551615");
    assert!(timeline(&late).threads.iter().all(|line| line.began_ns < 0));
}
