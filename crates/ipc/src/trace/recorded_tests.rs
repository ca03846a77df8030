use super::*;
use crate::latency::sample::{Caller, Sample};
use slowpath_tables::{CpuEvent, CpuEventKind};

/// A pair in a trace: pid 10 calls from a new thread 11, pid 20 serves; task 30 is a hog on CPU 1.
const TEXT: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 20/20   #P:2
#
          client-10      [000] ..... 1.000100: sched_wakeup_new: comm=client pid=11 prio=0 target_cpu=000
          client-10      [000] d..2. 1.000110: sched_switch: prev_comm=client prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=client next_pid=11 next_prio=0
          server-20      [001] d..2. 1.000120: sched_switch: prev_comm=server prev_pid=20 prev_prio=120 prev_state=S ==> next_comm=a hog next_pid=30 next_prio=49
          client-11      [000] d..3. 1.000200: sched_waking: comm=server pid=20 prio=120 target_cpu=001
          client-11      [000] d..2. 1.000210: sched_switch: prev_comm=client prev_pid=11 prev_prio=0 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0       [000] ..... 1.000220: cpu_idle: state=1 cpu_id=0
          <idle>-0       [000] d.h2. 1.000300: irq_handler_entry: irq=25 name=virtio0-input
          <idle>-0       [000] d.s3. 1.000310: softirq_entry: vec=3 [action=NET_RX]
          <idle>-0       [000] d.s3. 1.000320: softirq_exit: vec=3 [action=NET_RX]
          <idle>-0       [000] d.h2. 1.000330: irq_handler_exit: irq=25 ret=handled
          <idle>-0       [000] ..... 1.000340: cpu_frequency: state=1800000 cpu_id=0
             hog-30      [001] d..2. 1.005200: sched_switch: prev_comm=a hog prev_pid=30 prev_prio=49 prev_state=R+ ==> next_comm=server next_pid=20 next_prio=120
          server-20      [001] d..3. 1.005250: sched_waking: comm=client pid=11 prio=0 target_cpu=000
          <idle>-0       [000] ..... 1.005255: cpu_idle: state=4294967295 cpu_id=0
          server-20      [001] d..2. 1.005260: sched_switch: prev_comm=server prev_pid=20 prev_prio=120 prev_state=S ==> next_comm=a hog next_pid=30 next_prio=49
          <idle>-0       [000] d..2. 1.005270: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=11 next_prio=0
          client-11      [000] d..2. 1.005300: sched_switch: prev_comm=client prev_pid=11 prev_prio=0 prev_state=X ==> next_comm=client next_pid=10 next_prio=120
          client-10      [000] ..... 1.005310: tracing_mark_write: slowpath-ipc: deadline missed
";

fn pair() -> PairSamples {
    let sample = Sample {
        caller: Caller::Fifo,
        intended: 1_000_150_000,
        start: 1_000_150_000,
        served: 1_005_205_000,
        end: 1_005_280_000,
        client_thread: 11,
        server_thread: 20,
        client_cpu: 0,
        server_cpu: 1,
        server_policy: 0,
        server_priority: 0,
        server_nice: 0,
    };
    let (client, server) = (Process { pid: 10, started: 900_000_000 }, Process { pid: 20, started: 800_000_000 });
    let helpers = Vec::new();
    PairSamples { client, server, helpers, samples: vec![sample], ended: None, fifo_refused: None, missed: None }
}

fn tables(text: &str) -> Tables {
    recorded(text.as_bytes(), &[pair()], OffCpuReason::PipeOrSocket, Owner::default(), Manifest::default())
}

/// `(tid, from, duration, runnable)` in us after the first second, with the reason and who woke it.
fn away(tables: &Tables) -> Vec<(u32, u64, u64, u64, OffCpuReason, Option<u32>)> {
    let us = |time: Nanos| time.0 / 1000;
    let row =
        |row: &OffCpu| (row.tid, us(row.ts) - 1_000_000, us(row.duration), us(row.runnable), row.reason, row.waker_tid);
    tables.off_cpu.iter().map(row).collect()
}

#[test]
fn times_off_the_cpu_are_those_between_the_switches() {
    use OffCpuReason::{Kernel, PipeOrSocket, Runnable};
    let tables = tables(TEXT);
    let expected = [
        (11, 100, 10, 10, Runnable, None),
        // Between transactions the caller waits for something else.
        (10, 110, 5190, 0, Kernel, None),
        (20, 120, 5080, 5000, PipeOrSocket, Some(11)),
        (11, 210, 5060, 20, PipeOrSocket, Some(20)),
        (20, 5260, 50, 0, PipeOrSocket, None),
    ];
    assert_eq!(away(&tables), expected);
    assert_eq!(tables.off_cpu[2].waker_pid, Some(10), "a thread of the client woke it");
    assert_eq!(tables.off_cpu[2].start, Nanos(800_000_000));
    let lives: Vec<_> = tables.exits.iter().map(|row| (row.tid, row.ts.0 / 1000, row.running)).collect();
    assert_eq!(lives, [(11, 1_005_300, false), (10, 1_005_310, true), (20, 1_005_310, true)]);
    assert_eq!(tables.forks.iter().map(|row| (row.pid, row.tid, row.thread)).collect::<Vec<_>>(), [(10, 11, true)]);
    let names: Vec<_> = tables.execs.iter().map(|row| (row.pid, row.filename.as_str())).collect();
    assert_eq!(names, [(20, "P0-server"), (10, "P0-client")]);
    assert!(tables.manifest.losses.0.is_empty(), "{:?}", tables.manifest.losses);
}

#[test]
fn what_each_cpu_did_stands_by_its_cpu() {
    let us = |time: Nanos| time.0 / 1000;
    let tables = tables(TEXT);
    let rows: Vec<_> = tables
        .cpu_events
        .iter()
        .filter(|row| row.kind != CpuEventKind::Task)
        .map(|row| (row.kind, row.cpu, us(row.ts) - 1_000_000, row.duration.map(us), row.name.as_str(), row.value))
        .collect();
    let expected = [
        (CpuEventKind::Idle, 0, 220, Some(5035), "idle", Some(1)),
        (CpuEventKind::Interrupt, 0, 300, Some(30), "virtio0-input", None),
        (CpuEventKind::Softirq, 0, 310, Some(10), "NET_RX", None),
        (CpuEventKind::Frequency, 0, 340, None, "frequency", Some(1_800_000)),
    ];
    assert_eq!(rows, expected);
    let ran = |tid: u32| -> u64 {
        let rows = tables.cpu_events.iter().filter(|row| row.kind == CpuEventKind::Task && row.tid == Some(tid));
        rows.map(|row| row.duration.map_or(0, us)).sum()
    };
    assert_eq!((ran(30), ran(20), ran(11), ran(10), ran(0)), (5080 + 50, 20 + 60, 100 + 30, 10 + 10, 0));
    let hog = tables.cpu_events.iter().find(|row| row.tid == Some(30)).unwrap();
    assert_eq!((hog.name.as_str(), hog.value), ("a hog", Some(49)));
}

#[test]
fn a_switch_that_is_missing_ends_the_wait_at_the_wake_up_and_is_counted() {
    let without: String =
        TEXT.lines().filter(|line| !line.contains("next_pid=20")).map(|line| format!("{line}\n")).collect();
    let tables = tables(&without);
    let of_server: Vec<_> = away(&tables).into_iter().filter(|row| row.0 == 20).collect();
    assert_eq!(of_server[0], (20, 120, 80, 0, OffCpuReason::PipeOrSocket, Some(11)));
    assert_eq!(tables.manifest.losses.of("off_cpu"), 1);
    // The hog's time and the server's are not known either.
    assert_eq!(tables.manifest.losses.of("cpu_events"), 1);
    let is_server = |row: &&CpuEvent| row.tid == Some(20) && row.ts > Nanos(1_000_120_000);
    assert_eq!(tables.cpu_events.iter().find(is_server), None);
}

#[test]
fn a_buffer_that_was_overwritten_counts_from_where_all_cpus_are_there() {
    let overwritten = TEXT.replace("20/20", "20/90");
    // CPU 1 begins 20 us later.
    assert_eq!(tables(&overwritten).manifest.started, Nanos(1_000_120_000));
    assert_eq!(tables(TEXT).manifest.started, Nanos(1_000_100_000));
    let empty = tables("");
    assert_eq!((empty.off_cpu.len(), empty.execs.len(), empty.manifest.ended), (0, 2, Some(Nanos(0))));
}
