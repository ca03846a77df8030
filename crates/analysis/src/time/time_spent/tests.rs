//! Launches as text of which every part is known.

use super::*;
use crate::time::ledger::ledger;

/// `a` is ready at 1000. It reads for 60 in a major fault of which it runs 10, has a minor fault of 20, maps memory for 30, waits for a
/// timer for 40 and for a CPU for 25; then it waits for its child, which starts from 400 to 600, with a minor fault of 15 in it,
/// serves until 700 and ends.
const ROWS: &str = r#"
== manifest
{"started": 90, "ended": 1100, "launch": {"released": 100, "ready": 1000, "ready_when": "exit", "outcome": "ready"},
 "probes": [{"name": "off_cpu", "state": "attached"}, {"name": "memory", "state": "attached"}]}
== execs
ts  pid start filename command_line run_time
100 7   1     /bin/a   /bin/a       0
420 9   400   /bin/b   /bin/b       20
== forks
ts  parent_pid parent_start pid start tid thread
400 7          1            9   400   9   false
== first_waits
ts  pid start command_line
600 9   400   /bin/b
== exits
ts   pid start tid last running run_time utime stime
1000 7   1     7   true false   505      0     0
700  9   400   9   true false   300      0     0
== faults
ts  duration pid start tid kind  address
110 60       7   1     7   major 4096
200 20       7   1     7   minor 8192
500 15       9   400   9   minor 4096
== memory_calls
ts  duration pid start tid call
240 30       7   1     7   mmap
== off_cpu
ts  duration pid start tid reason   runnable waker_pid waker_tid
115 50       7   1     7   fault_io 0        -         -
300 65       7   1     7   timer    25       -         -
410 290      7   1     7   child    0        9         9
"#;

fn found(text: &str) -> TimeSpent {
    let tables = Tables::from_text(text).unwrap();
    let ledger = ledger(&tables).unwrap().unwrap();
    of_launch(&tables, &ledger).unwrap()
}

fn parts(found: &TimeSpent) -> Vec<(Part, u64, Option<u64>)> {
    found.parts.iter().map(|one| (one.part, one.to_ready.unwrap().0, one.cpu.map(|time| time.0))).collect()
}

#[test]
fn every_part_has_its_time_on_the_path_and_on_the_cpu() {
    let found = found(ROWS);
    // The path goes from a to b at the fork, and back at the end of b.
    assert_eq!(
        parts(&found),
        [
            (Part::Storage, 60, Some(10)),
            (Part::FaultsAndMemory, 65, Some(65)),
            (Part::Waits, 40, None),
            (Part::WaitsForCpu, 25, None),
            (Part::ChildStart, 185, Some(185)),
            (Part::Program, 525, Some(545)),
        ]
    );
    let launch = ToReady { time: Nanos(900), unexplained: Nanos(0) };
    assert_eq!((found.launch, found.cpu), (Some(launch), Nanos(805)));
    assert_eq!(found.uncounted_threads, 0);
}

#[test]
fn parts_and_what_is_unexplained_add_up() {
    let found = found(ROWS);
    let to_ready: Nanos = found.parts.iter().filter_map(|part| part.to_ready).sum();
    let launch = found.launch.unwrap();
    assert_eq!(to_ready + launch.unexplained, launch.time);
    assert_eq!(found.parts.iter().filter_map(|part| part.cpu).sum::<Nanos>(), found.cpu);
}

#[test]
fn what_a_child_runs_that_never_waits_for_events_is_the_program() {
    let found = found(&ROWS.replace("600 9   400   /bin/b\n", ""));
    assert_eq!(parts(&found)[4], (Part::ChildStart, 0, Some(0)));
    assert_eq!(parts(&found)[5], (Part::Program, 710, Some(730)));
}

#[test]
fn a_launch_that_was_never_ready_has_no_table() {
    let text = ROWS.replace("\"ready\": 1000, ", "").replace("\"outcome\": \"ready\"", "\"outcome\": \"killed\"");
    let tables = Tables::from_text(&text).unwrap();
    assert_eq!(of_launch(&tables, &ledger(&tables).unwrap().unwrap()), None);
}

#[test]
fn of_what_runs_already_only_the_cpu_time_counts() {
    let tables = Tables::from_text(ROWS).unwrap();
    let found = of_running(&ledger(&tables).unwrap().unwrap());
    assert_eq!((found.launch, found.cpu), (None, Nanos(805)));
    let cpu = |part: Part| found.parts.iter().find(|one| one.part == part).unwrap().cpu.map(|time| time.0);
    assert_eq!([Part::Storage, Part::FaultsAndMemory, Part::Program].map(cpu), [Some(10), Some(65), Some(730)]);
    assert!(found.parts.iter().all(|part| part.to_ready.is_none()));
}

#[test]
fn faults_in_which_a_hypervisor_took_time_are_no_more_than_the_cpu_time() {
    // The counter of `a` leaves out what its faults lasted: 25 of 505.
    let found = found(&ROWS.replace("7   1     7   true false   505", "7   1     7   true false   25"));
    let cpu: Vec<u64> = found.parts.iter().filter_map(|part| part.cpu).map(|time| time.0).collect();
    assert_eq!((cpu.iter().sum::<u64>(), found.cpu), (325, Nanos(325)), "{found:?}");
}
