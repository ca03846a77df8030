//! Finding `slow_ipc_reply` on recordings with answers known by hand.

use slowpath_analysis::findings::{of_recordings, slow_ipc_reply};
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;

const MS: u64 = 1_000_000;

/// `client` (7) runs from 0 to `length` ms with `server` (9), which it did not start; `launch` is the manifest's.
fn recording(launch: &str, length: u64, rows: &[String]) -> Tables {
    let end = length * MS;
    Tables::from_text(&format!(
        r#"
== manifest
{{"command": ["/bin/client"], "started": 0, "ended": {end}, {launch}
 "probes": [{{"name": "off_cpu", "state": "attached"}}]}}
== execs
ts pid start filename    present run_time command_line
0  7   9     /bin/client false   0        /bin/client
0  9   2     /bin/server true    0        /bin/server
== exits
ts    pid start tid last running
{end} 7   9     7   true false
{end} 9   2     9   true true
== files
dev ino path
1   1   /usr/lib/libc.so.6
1   2   /bin/server
== frames
id kind dev ino offset
1  file 1   1   16
2  file 1   2   32
== symbols
frame level function
1     0     clock_nanosleep
2     0     look_up
== stacks
id frame parent
1  2     -
2  1     1
== off_cpu
ts duration pid start tid reason runnable woken waker_pid waker_tid syscall stack
{}
"#,
        rows.join("\n")
    ))
    .unwrap()
}

/// The client asks at `at` ms, and the server sleeps for `sleep` ms, runs for `runs` ms more and answers. It slept in its loop before.
fn trip(at: u64, before: u64, sleep: u64, runs: u64) -> [String; 3] {
    let (asked, replied) = (at * MS, (at + 1 + sleep + runs) * MS);
    [
        format!("{} {} 9 2 9 poll 0 {asked} 7 7 7 -", before * MS, asked - before * MS),
        format!("{} {} 9 2 9 timer 0 - - - 230 2", asked + MS, sleep * MS),
        format!("{} {} 7 9 7 pipe_or_socket 0 {replied} 9 9 0 -", asked + 1000, replied - asked - 1000),
    ]
}

fn found(tables: &Tables) -> Option<Finding> {
    of_recordings(&[tables], None).into_iter().find(|finding| finding.name == slow_ipc_reply::NAME)
}

fn launch(length: u64) -> String {
    format!(r#""launch": {{"released": 0, "ready": {}, "ready_when": "exit", "outcome": "ready"}},"#, length * MS)
}

#[test]
fn a_server_that_sleeps_is_found_with_the_function_that_sleeps() {
    for (launch, when) in [(String::new(), ""), (launch(1000), " before it is ready")] {
        let finding = found(&recording(&launch, 1000, &trip(100, 0, 400, 2))).unwrap();
        assert!((finding.cost.value - 400.0).abs() < 0.01, "{finding:?}");
        assert_eq!(finding.cost.low, Some(finding.cost.value));
        assert!(finding.cost.high.is_some_and(|high| (402.0..404.0).contains(&high)), "{finding:?}");
        let title = format!("client waits 400 of 1000 ms{when} for slow replies of server, which waits in look_up");
        assert_eq!((finding.title, finding.confidence), (title, Confidence::High));
        assert_eq!(finding.subject["server"], "server");
        assert_eq!(finding.evidence[1].rows[0]["function"], "look_up");
    }
}

#[test]
fn many_replies_add_up_and_have_quantiles() {
    let rows: Vec<String> = (0..10u64).flat_map(|n| trip(100 * n + 10, (100 * n).saturating_sub(50), 30, 1)).collect();
    let finding = found(&recording("", 1000, &rows)).unwrap();
    assert!((finding.cost.value - 300.0).abs() < 0.1, "{finding:?}");
    let row = &finding.evidence[0].rows[0];
    assert_eq!((&row["replies"], &row["slow_replies"], &row["p50_ms"]), (&10.into(), &10.into(), &31.999.into()));
}

#[test]
fn replies_that_are_served_at_once_are_not_slow() {
    let rows: Vec<String> = (0..10u64)
        .flat_map(|n| {
            let [idle, _, waits] = trip(100 * n + 10, (100 * n).saturating_sub(50), 0, 6);
            [idle, waits]
        })
        .collect();
    assert!(found(&recording("", 1000, &rows)).is_none(), "7 ms of service each");
    // One that computes for long is.
    let [idle, _, waits] = trip(100, 0, 0, 300);
    let finding = found(&recording("", 1000, &[idle, waits])).unwrap();
    assert!((finding.cost.value - 301.0).abs() < 0.01, "{finding:?}");
    assert_eq!(finding.title, "client waits 301 of 1000 ms for slow replies of server");
}

/// The client asks at `at` ms, the server waits for a CPU for `queue` ms, runs for 1 ms and answers. It slept in its loop before.
fn queued(at: u64, before: u64, queue: u64) -> [String; 2] {
    let (asked, replied) = (at * MS, (at + queue + 1) * MS);
    let off = asked - before * MS + queue * MS;
    [
        format!("{} {off} 9 2 9 poll {} {asked} 7 7 7 -", before * MS, queue * MS),
        format!("{} {} 7 9 7 pipe_or_socket 0 {replied} 9 9 0 -", asked + 1000, replied - asked - 1000),
    ]
}

#[test]
fn a_server_that_was_displaced_once_or_twice_may_have_met_other_load() {
    let of = |replies: u64| {
        let rows = (0..10u64).flat_map(|n| {
            let queue = if n < replies { 15 } else { 1 };
            queued(100 * n + 10, (100 * n).saturating_sub(50), queue)
        });
        found(&recording(&launch(1000), 1000, &rows.collect::<Vec<_>>())).unwrap()
    };
    let (twice, often) = (of(2), of(4));
    assert_eq!((twice.confidence, often.confidence), (Confidence::Low, Confidence::High), "{often:?}");
    assert!((twice.cost.value - 30.0).abs() < 0.1 && twice.cost.low == Some(0.0), "{twice:?}");
    assert!((often.cost.value - 60.0).abs() < 0.1, "{often:?}");
    let text = "for 30 ms of it, in 2 of 10 replies, the server, or the client once it was answered, waited for a CPU";
    assert!(twice.reasons.iter().any(|reason| reason.starts_with(text)), "{:?}", twice.reasons);
}

#[test]
fn what_the_launch_did_not_wait_for_is_nothing() {
    // Another thread of the client asks, and the end of the launch does not wait for it.
    let other = "== forks\nts parent_pid parent_start pid start tid thread\n10 7 9 7 9 8 true\n\
                 == exits\nts pid start tid last\n900000000 7 9 8 false\n";
    let rows = trip(100, 0, 400, 2).map(|row| row.replace("7 9 7 pipe", "7 9 8 pipe").replace(" 7 7 7 -", " 7 8 7 -"));
    let mut tables = recording(&launch(1000), 1000, &rows);
    let more = Tables::from_text(other).unwrap();
    tables.forks.extend(more.forks);
    tables.exits.extend(more.exits);
    assert!(found(&tables).is_none());
    tables.manifest.launch = None;
    assert!(found(&tables).is_some(), "it waited all the same");
}

#[test]
fn what_is_not_seen_to_the_end_is_said() {
    let rested = trip(100, 0, 400, 2).map(|row| row.replace("9 2 9 timer 0 - - - 230 2", "9 2 9 poll 0 - - - 7 -"));
    let finding = found(&recording("", 1000, &rested)).unwrap();
    assert_eq!(finding.confidence, Confidence::Medium, "{finding:?}");
    let mut lost = recording("", 1000, &trip(100, 0, 400, 2));
    lost.manifest.losses.add("off_cpu", 1000);
    assert_eq!(found(&lost).unwrap().confidence, Confidence::Low);
}

#[test]
fn less_than_a_fiftieth_is_nothing() {
    assert!(found(&recording("", 30_000, &trip(100, 0, 400, 2))).is_none());
    assert!(found(&recording("", 1000, &trip(100, 0, 4, 2))).is_none(), "4 ms");
}
