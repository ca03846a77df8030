//! The finding on recordings written as text, with answers known by hand.

use serde_json::{Value, json};
use slowpath_analysis::findings::of_recordings;
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;

const DEVICES: &str =
    r#""devices": [{"dev": 1, "name": "loop0", "mount_point": "/", "fs": "ext4", "read_ahead_kb": KIB, "lab": true}]"#;
const LAUNCH: &str = r#""launch": {"released": 0, "ready": 10000000, "ready_when": "exit", "outcome": "ready"}"#;

/// The launch takes 10 ms. Thread 7 waits from 1 to 3 ms and from 5 to 6 ms for the library, thread 8 of the same
/// process from 2 to 4 ms for the data file, the child from 7 to 7.5 ms; the last fault begins after ready.
const ROWS: &str = "
== execs
ts  pid start filename  command_line dev ino min_flt maj_flt
100 7   1     /bin/prog prog         1   4   0       0
== forks
ts  parent_pid parent_start pid start tid thread
200 7          1            7   1     8   true
300 7          1            20  5     20  false
== files
dev ino path      size   mtime directory
1   4   /bin/prog 8192   1     false
1   5   /lib/a.so 409600 1     false
1   6   /data     409600 1     false
== sections
dev ino name    kind   offset size
1   5   .text   text   0      204800
1   5   .rodata rodata 204800 204800
== mappings
ts  pid start op  address length dev ino offset prot
150 7   1     map 65536   409600 1   5   0      5
== faults
ts       duration pid start tid address kind
1000000  2000000  7   1     7   65536   major
5000000  1000000  7   1     7   270336  major
7000000  500000   20  5     20  69632   major
12000000 500000   7   1     7   73728   major
== reads
ts       duration pid start tid dev ino offset result syscall
2000000  2000000  7   1     8   1   6   0      4096   0
";

const PAGE_CACHE: &str = "
== page_cache
ts       pid start tid op  dev ino page pages asker
1000100  7   1     7   add 1   5   0    1     fault
1000200  7   1     7   add 1   5   1    3     fault
2000100  7   1     8   add 1   6   0    2     read
5000100  7   1     7   add 1   5   48   4     fault
7000100  20  5     20  add 1   5   9    1     advice
8000000  99  0     99  add 1   6   50   2     other
12000100 7   1     7   add 1   5   2    1     fault
";

fn recording(kib: &str, rows: &str) -> Tables {
    let devices = DEVICES.replace("KIB", kib);
    Tables::from_text(&format!("== manifest\n{{{LAUNCH}, {devices}}}\n{rows}")).unwrap()
}

fn cold() -> Tables {
    recording("128", &format!("{ROWS}{PAGE_CACHE}"))
}

/// The training demanded pages 0, 50 and 49 of the library and pages 50 and 0 of the data file.
fn training() -> Tables {
    let rows = "
== files
dev ino path      size   mtime
1   50  /lib/a.so 409600 1
1   60  /data     409600 1
== page_cache
ts  pid start tid op  dev ino page pages asker
100 7   1     7   add 1   50  0    1     fault
200 7   1     7   add 1   50  50   1     fault
300 7   1     7   add 1   50  49   1     fault
400 7   1     7   add 1   60  50   1     read
500 7   1     7   add 1   60  0    1     read
";
    recording("0", rows)
}

fn find(launches: &[&Tables], training: Option<&Tables>) -> Option<Finding> {
    of_recordings(launches, training).into_iter().next()
}

/// The rows of the evidence whose text begins so.
fn rows(finding: &Finding, text: &str) -> Vec<Value> {
    let evidence = finding.evidence.iter().find(|evidence| evidence.text.starts_with(text));
    let evidence = evidence.unwrap_or_else(|| panic!("no evidence {text:?} in {finding:#?}"));
    evidence.rows.iter().map(|row| json!(row)).collect()
}

fn cells(row: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| row[name].clone()).collect()
}

#[test]
fn the_cost_is_the_wall_time_in_which_the_main_process_waited_before_ready() {
    let tables = cold();
    let finding = find(&[&tables], None).unwrap();
    assert_eq!(finding.cost.value, 4.0);
    assert_eq!(finding.subject["process"], "prog");
    assert_eq!(finding.title, "prog waits 4 of 10 ms for file reads before it is ready");
    let time = &rows(&finding, "Where the time")[0];
    let names =
        ["launch_ms", "blocked_process_ms", "blocked_first_thread_ms", "blocked_any_thread_ms", "unexplained_ms"];
    assert_eq!(cells(time, &names), [json!(10.0), json!(4.0), json!(3.0), json!(4.5), json!(5.5)]);
}

#[test]
fn several_launches_give_an_interval_and_one_gives_none() {
    let one = cold();
    let mut other = cold();
    other.faults[1].duration = Some(slowpath_tables::Nanos(2_000_000));
    let finding = find(&[&one, &other], None).unwrap();
    assert_eq!(finding.cost.value, 4.5);
    assert!(finding.cost.low.unwrap() < 4.0 && finding.cost.high.unwrap() > 5.0);
    assert_eq!(rows(&finding, "Where the time").len(), 2);
    assert_eq!(find(&[&one], None).unwrap().cost.low, None);
}

#[test]
fn files_show_need_waste_steps_sizes_and_waiting() {
    let (tables, training) = (cold(), training());
    let finding = find(&[&tables], Some(&training)).unwrap();
    let files = rows(&finding, "What was read of each file");
    let names = ["path", "pages_needed", "pages_read", "pages_wasted", "steps_forward", "steps_backward", "blocked_ms"];
    // Read of the library: 0-3, 48-51 and 9; needed 0, 49 and 50. The fault of the child counts for it too.
    assert_eq!(
        cells(&files[0], &names),
        [json!("/lib/a.so"), json!(3), json!(9), json!(6), json!(1), json!(1), json!(3.5)]
    );
    assert_eq!(
        cells(&files[1], &names),
        [json!("/data"), json!(2), json!(4), json!(2), json!(0), json!(1), json!(2.0)]
    );
    let by = ["pages_by_fault", "pages_by_readahead", "pages_by_advice", "median_kib_text", "median_kib_rodata"];
    // Address 270336 is byte 204800 of the library: page 50, the first of .rodata.
    assert_eq!(cells(&files[0], &by), [json!(2), json!(6), json!(1), json!(16.0), json!(16.0)]);
    let sections = rows(&finding, "The same by ELF section");
    let names = ["section", "pages_read", "pages_needed", "blocked_ms"];
    assert_eq!(cells(&sections[0], &names), [json!(".text"), json!(7), json!(2), json!(2.5)]);
    assert_eq!(cells(&sections[1], &names), [json!(".rodata"), json!(2), json!(1), json!(1.0)]);
}

#[test]
fn without_a_training_launch_need_is_unknown_and_said_to_be() {
    let tables = cold();
    let finding = find(&[&tables], None).unwrap();
    let files = rows(&finding, "What was read of each file");
    assert_eq!(
        cells(&files[0], &["pages_needed", "pages_wasted", "steps_backward"]),
        [json!(null), json!(null), json!(null)]
    );
    assert!(finding.reasons.iter().any(|reason| reason.contains("no launch at readahead 0")), "{:?}", finding.reasons);
    let not_a_training = find(&[&tables], Some(&tables)).unwrap();
    assert!(not_a_training.reasons.iter().any(|reason| reason.contains("readahead of 128 KiB")));
}

#[test]
fn existing_advice_and_tasks_outside_the_tree_are_reported() {
    let (tables, training) = (cold(), training());
    let finding = find(&[&tables], Some(&training)).unwrap();
    let advice = &rows(&finding, "Pages that an advice")[0];
    assert_eq!(cells(advice, &["pid", "path", "pages_read"]), [json!(20), json!("/lib/a.so"), json!(1)]);
    let outside = &rows(&finding, "Pages that other tasks")[0];
    // Page 50 of the data file is one of the five pages needed.
    assert_eq!(cells(outside, &["pid", "pages_read", "pages_needed"]), [json!(99), json!(2), json!(1)]);
    assert_eq!(outside["share_of_need_percent"], json!(20.0));
}

#[test]
fn causes_add_up_to_all_pages_read_before_ready() {
    let tables = cold();
    let finding = find(&[&tables], None).unwrap();
    let pages: u64 = rows(&finding, "Why pages were read").iter().map(|row| row["pages_read"].as_u64().unwrap()).sum();
    assert_eq!(pages, 13);
    let processes = rows(&finding, "Waiting for file reads by process");
    assert_eq!(
        cells(&processes[0], &["process", "blocked_ms", "blocked_wall_ms", "pages_read"]),
        [json!("prog"), json!(5.0), json!(4.0), json!(10)]
    );
}

#[test]
fn a_warm_launch_is_no_finding() {
    let mut tables = cold();
    tables.faults.iter_mut().for_each(|fault| fault.duration = Some(slowpath_tables::Nanos(1000)));
    tables.reads.clear();
    assert_eq!(find(&[&tables], None), None);
    assert_eq!(find(&[&Tables::default()], None), None);
    assert_eq!(find(&[], None), None);
}

#[test]
fn a_shell_that_waits_for_its_child_does_not_hide_the_cost() {
    let rows = ROWS
        .replace("7   1     7   65536 ", "20  5     20  65536 ")
        .replace("7   1     7   270336", "20  5     20  270336");
    let mut tables = recording("128", &rows);
    tables.reads.clear();
    let finding = find(&[&tables], None).unwrap();
    assert_eq!(finding.subject["pid"], 20);
    assert_eq!(finding.cost.value, 3.5);
    assert!(finding.reasons.iter().any(|reason| reason.contains("hardly waited")));
}

#[test]
fn confidence_follows_losses_probes_and_launches() {
    let clean = cold();
    let training = training();
    let judge = |change: &dyn Fn(&mut Tables)| {
        let mut one = cold();
        change(&mut one);
        find(&[&one, &clean, &clean], Some(&training)).unwrap().confidence
    };
    assert_eq!(judge(&|_| {}), Confidence::High);
    assert_eq!(find(&[&clean], Some(&training)).unwrap().confidence, Confidence::Medium);
    assert_eq!(find(&[&clean, &clean, &clean], None).unwrap().confidence, Confidence::Medium);
    assert_eq!(judge(&|t| t.manifest.losses.add("faults", 1)), Confidence::Low, "1 of 14 events is more than 1 %");
    for why in ["over_memory_limit", "writer_behind", "not_written", "damaged"] {
        assert_eq!(judge(&|t| t.manifest.losses.add(&format!("{why}.faults"), 1)), Confidence::Low, "{why}");
    }
    assert_eq!(judge(&|t| t.manifest.losses.add("opens", 1)), Confidence::High, "the finding does not rest on opens");
    let unavailable = |name: &str| slowpath_recording::Probe {
        name: name.to_owned(),
        state: slowpath_recording::ProbeState::Unavailable,
    };
    assert_eq!(judge(&|t| t.manifest.probes.push(unavailable("fault"))), Confidence::Low);
    assert_eq!(judge(&|t| t.manifest.probes.push(unavailable("block"))), Confidence::Medium);
    let attached =
        |name: &str| slowpath_recording::Probe { state: slowpath_recording::ProbeState::Attached, ..unavailable(name) };
    assert_eq!(judge(&|t| t.manifest.probes = vec![attached("fault"), attached("read")]), Confidence::High);
    assert_eq!(judge(&|t| t.manifest.probes = vec![attached("fault")]), Confidence::Medium, "without --files");
    assert_eq!(judge(&|t| t.manifest.devices.clear()), Confidence::Medium);
    assert_eq!(judge(&|t| t.manifest.launch.as_mut().unwrap().ready = None), Confidence::Low);
}
