//! Finding `timed_wait` on recordings with answers known by hand.

use serde_json::Value;
use slowpath_analysis::findings::{of_recordings, timed_wait};
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;

/// `tool` is released at 0 and exits after `length` ns; it calls `wait_for` in its own file, which calls the C library.
fn recording(length: u64, rows: &str) -> Tables {
    Tables::from_text(&format!(
        r#"
== manifest
{{"command": ["/bin/tool"], "started": 0, "ended": {end},
 "launch": {{"released": 0, "ready": {length}, "ready_when": "exit", "outcome": "ready"}},
 "probes": [{{"name": "off_cpu", "state": "attached"}}]}}
== execs
ts pid start filename    run_time
0  7   1     /bin/tool   0
== exits
ts       pid start tid last running
{length} 7   1     7   true false
== files
dev ino path
1   1   /usr/lib/libc.so.6
1   2   /bin/tool
== frames
id kind dev ino offset
1  file 1   1   16
2  file 1   2   32
== symbols
frame level function
1     0     clock_nanosleep
2     0     wait_for
== stacks
id frame parent
1  2     -
2  1     1
{rows}"#,
        end = length + 100
    ))
    .unwrap()
}

fn found(length: u64, rows: &str) -> Option<Finding> {
    of_recordings(&[&recording(length, rows)], None).into_iter().find(|finding| finding.name == timed_wait::NAME)
}

const COLUMNS: &str = "== off_cpu\nts duration pid start tid reason runnable woken waker_pid waker_tid syscall stack\n";

fn off_cpu(rows: &[&str]) -> String {
    format!("{COLUMNS}{}\n", rows.join("\n"))
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_sleep_on_the_path_is_found_with_the_function_that_sleeps() {
    let finding = found(SECOND, &off_cpu(&["100 400000000 7 1 7 timer 100 400000000 - - 230 2"])).unwrap();
    assert!((finding.cost.value - 400.0).abs() < 0.001, "{finding:?}");
    assert_eq!((finding.cost.low, finding.confidence), (Some(finding.cost.value), Confidence::High));
    assert_eq!(finding.title, "tool waits 400 of 1000 ms for a sleep or a time-out before it is ready in wait_for");
    let place = &finding.evidence[0].rows[0];
    assert_eq!((&place["function"], &place["stack"]), (&"wait_for".into(), &"clock_nanosleep;wait_for".into()));
    assert_eq!((&place["waits"], &place["syscall"]), (&1.into(), &230.into()));
}

#[test]
fn a_caller_far_out_is_named_and_a_long_stack_without_one_is_cut() {
    // As with the debug information of the C library, which names what is inlined there, too.
    let lookup = [
        "poll",
        "send_dg",
        "context_send",
        "context_query",
        "querydomain",
        "search",
        "dns",
        "nss",
        "gaih",
        "getaddrinfo",
    ];
    let symbols: Vec<String> = lookup.iter().enumerate().map(|(level, name)| format!("3 {level} {name}")).collect();
    let rows = |outermost: &str| {
        format!(
            "== frames\nid kind dev ino offset\n3 file 1 1 48\n4 truncated - - -\n6 file - - -\n== stacks\nid frame parent\n{outermost}\n\
             == symbols\nframe level function\n{}\n{}",
            symbols.join("\n"),
            off_cpu(&["100 1001000000 7 1 7 poll 0 - - - 7 5"])
        )
    };
    let finding = found(2 * SECOND, &rows("5 3 1")).unwrap();
    let place = &finding.evidence[0].rows[0];
    assert_eq!((&finding.subject["function"], &place["function"]), (&"wait_for".into(), &"wait_for".into()));
    assert_eq!(place["stack"], format!("{};wait_for", lookup.join(";")));
    // Where a stack ends early, or has a damaged row, nobody knows who called.
    for without_caller in ["5 3 -", "4 4 -\n5 3 4", "4 6 -\n5 3 4"] {
        let finding = found(2 * SECOND, &rows(without_caller)).unwrap();
        let place = &finding.evidence[0].rows[0];
        assert_eq!((finding.subject.get("function"), &place["function"]), (None, &Value::Null), "{without_caller}");
        assert_eq!(place["stack"], lookup[..8].join(";"));
    }
}

#[test]
fn a_time_out_of_poll_counts_and_data_of_a_device_do_not() {
    let timed_out = found(6 * SECOND, &off_cpu(&["100 5001000000 7 1 7 poll 0 - - - 7 2"])).unwrap();
    assert_eq!((timed_out.cost.low, timed_out.confidence), (Some(0.0), Confidence::Medium), "{timed_out:?}");
    assert!((timed_out.cost.value - 5001.0).abs() < 0.01);
    // As measured: the resolver's 5 s end up to 5.2 ms late. 9 ms are more than slack and wake-up take.
    for (wait, is_found) in
        [(5_005_150_000u64, true), (5_009_000_000, false), (1_003_900_000, true), (1_004_100_000, false)]
    {
        let row = format!("100 {wait} 7 1 7 poll 0 - - - 7 2");
        assert_eq!(found(6 * SECOND, &off_cpu(&[&row])).is_some(), is_found, "{wait}");
    }
    let data = found(SECOND, &off_cpu(&["100 437000000 7 1 7 poll 0 - - - 7 2"]));
    assert!(data.is_none(), "{data:?}");
}

#[test]
fn what_a_task_ended_is_no_timed_wait_nor_is_a_short_one() {
    let lock = found(SECOND, &off_cpu(&["100 400000000 7 1 7 futex 0 400000100 900 900 202 2"]));
    assert!(lock.is_none(), "{lock:?}");
    assert!(found(SECOND, &off_cpu(&["100 400000000 7 1 7 futex 0 - - - 202 2"])).is_some());
    assert!(found(20 * SECOND, &off_cpu(&["100 200000000 7 1 7 timer 0 - - - 230 2"])).is_none(), "1 % of the launch");
}

#[test]
fn a_program_that_paces_itself_has_none() {
    let frame = |number: u64| format!("{} 33000000 7 1 7 timer 0 - - - 230 2", 100 + number * 40_000_000);
    let frames: Vec<String> = (0..20).map(frame).collect();
    assert!(found(SECOND, &off_cpu(&frames.iter().map(String::as_str).collect::<Vec<_>>())).is_none());
}

#[test]
fn a_sleep_beside_the_path_is_nothing() {
    let other = "
== forks
ts  parent_pid parent_start pid start tid thread
50  7          1            8   60    8   false
== exits
ts        pid start tid last
900000000 8   60    8   true
";
    let rows = off_cpu(&["100 800000000 8 60 8 timer 0 - - - 230 2"]);
    assert!(found(SECOND, &format!("{other}{rows}")).is_none());
}

#[test]
fn without_stacks_and_with_lost_rows_less_is_said() {
    let finding = found(SECOND, &off_cpu(&["100 400000000 7 1 7 timer 100 400000000 - - 230 -"])).unwrap();
    assert_eq!(finding.title, "tool waits 400 of 1000 ms for a sleep or a time-out before it is ready");
    let mut lost = recording(SECOND, &off_cpu(&["100 400000000 7 1 7 timer 100 400000000 - - 230 2"]));
    lost.manifest.losses.add("off_cpu", 1000);
    assert_eq!(of_recordings(&[&lost], None)[0].confidence, Confidence::Low);
}

/// `then` and `then_ms` of the first place.
fn then(rows: &str) -> (Value, Value) {
    let finding = found(SECOND, rows).unwrap();
    let place = &finding.evidence[0].rows[0];
    (place["then"].clone(), place["then_ms"].clone())
}

/// A function of the program itself, with stack 3, and a sample in it at 700 ms.
const CONNECTS: &str = "
== frames
id kind dev ino offset
3  file 1   2   48
== symbols
frame level function
3     0     connect_next
== stacks
id frame parent
3  3     -
== cpu_samples
ts        pid start tid cpu kernel stack
700000000 7   1     7   0   false  3
";

#[test]
fn what_follows_a_wait_is_named_by_its_function_else_by_its_program() {
    // The thread has a CPU 100 ns after the wake-up: that is no step of its own.
    let rows = off_cpu(&["100 400000000 7 1 7 timer 100 400000000 - - 230 2"]);
    assert_eq!(then(&rows), ("on CPU in tool".into(), 600.0.into()));
    assert_eq!(then(&format!("{CONNECTS}{rows}")), ("on CPU in connect_next".into(), 600.0.into()));
    // A sleep, and at its end a wait for a lock that another thread gives back 200 ms later.
    let waits =
        ["100 400000000 7 1 7 timer 0 - - - 230 2", "400000100 200000000 7 1 7 futex 0 600000100 900 900 202 3"];
    let rows = off_cpu(&waits);
    assert_eq!(then(&format!("{CONNECTS}{rows}")), ("locks in connect_next".into(), 200.0.into()));
}

#[test]
fn of_several_waits_in_one_place_the_most_common_step_follows() {
    // 10 and 30 ms without a sample, then 360 ms with one.
    let rows = off_cpu(&[
        "100 200000000 7 1 7 timer 0 - - - 230 2",
        "210000100 200000000 7 1 7 timer 0 - - - 230 2",
        "440000100 200000000 7 1 7 timer 0 - - - 230 2",
    ]);
    assert_eq!(then(&format!("{CONNECTS}{rows}")), ("on CPU in tool".into(), 10.0.into()));
}

#[test]
fn another_process_that_waits_is_followed_by_what_it_does_itself() {
    let helper = "
== forks
ts  parent_pid parent_start pid start tid thread
50  7          1            8   60    8   false
== execs
ts pid start filename    run_time
70 8   60    /bin/helper 0
== exits
ts        pid start tid last
900000000 8   60    8   true
";
    let rows = off_cpu(&[
        "100 400000000 8 60 8 timer 0 - - - 230 -",
        "200 500000000 7 1 7 pipe_or_socket 0 500000200 8 8 0 -",
    ]);
    assert_eq!(then(&format!("{helper}{rows}")), ("on CPU in helper".into(), 100.0.into()));
}

#[test]
fn nothing_follows_a_wait_that_ends_when_the_program_is_ready() {
    let rows = off_cpu(&["100 999999900 7 1 7 futex 0 - - - 202 2"]);
    assert_eq!(then(&rows), (Value::Null, Value::Null));
}
