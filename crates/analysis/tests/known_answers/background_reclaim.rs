//! Finding `background_reclaim` and its shares, on recordings with answers known by hand.

use slowpath_analysis::finding::{Finding, Row};
use slowpath_analysis::findings::{background_reclaim, of_recordings};
use slowpath_analysis::memory::background_reclaim::{Attribution, BackgroundReclaim, sum};
use slowpath_analysis::metrics::{Measure, Source, recorded_metrics};
use slowpath_analysis::{Confidence, LaunchFacts};
use slowpath_recording::Tables;
use slowpath_tables::{MemoryWorkKind, Nanos, Pages, Unit};

/// One second of `video`, which uses 100 ms of CPU time in two processes, while the kernel's threads use 20 ms and more. It takes 40
/// of 100 pages: 30 faults in memory without a file (of them 10 in the child), none for the file that it maps, and 10 pages of the
/// page cache.
const PRESSED: &str = r#"
== manifest
{"command": ["/usr/bin/video"], "started": 0, "ended": 1000000000,
 "launch": {"released": 0, "ready": 1000000000, "ready_when": "exit", "outcome": "ready"},
 "probes": [{"name": "fault", "state": "attached"}, {"name": "memory_work", "state": "attached"}],
 "memory_threads": {"threads": [
    {"name": "kcompactd0", "pid": 63, "cpu_time": 10000000}, {"name": "khugepaged", "pid": 65, "cpu_time": 8000000},
    {"name": "ksmd", "pid": 64, "cpu_time": 3000000},
    {"name": "kswapd0", "pid": 60, "cpu_time": 20000000}, {"name": "kswapd1", "pid": 61, "cpu_time": 0}],
  "counters": {"pgalloc": 100, "pgscan_kswapd": 700, "compact_stall": 0}}}
== execs
ts present pid start filename       command_line run_time min_flt
0  false   7   1     /usr/bin/video "video"      0        0
== forks
ts parent_pid parent_start pid start tid thread
5  7          1            8   2     8   false
== exits
ts  pid start tid last run_time  min_flt
900 7   1     7   true 60000000  21
901 8   2     8   true 40000000  10
== files
dev ino path
1   42  /usr/bin/video
== mappings
ts pid start op  address  length prot dev ino offset
1  7   1     map 0x400000 4096   5    1   42  0
== page_cache
ts pid start tid op  dev ino page pages asker syscall
50 7   1     7   add 1   42  0    10    read  0
51 7   1     7   delete 1 42 0    10    read  0
"#;

/// Faults at places without a file, and one in a file.
fn faults() -> String {
    let mut text = "== faults\nts duration pid start tid address kind\n100 1000 7 1 7 0x400000 minor\n".to_owned();
    for number in 0..30u64 {
        let (pid, start) = if number < 20 { (7, 1) } else { (8, 2) };
        text.push_str(&format!("{} 1000 {pid} {start} {pid} {} minor\n", 101 + number, 0x10_0000 + (number << 12)));
    }
    text
}

/// Wake-ups of kswapd: 12 of 20 by the program, of them 3 by the child; 4 by others, 4 in an interrupt.
fn wake_ups() -> String {
    let mut text = "== memory_work\nts pid start tid in_tree work node succeeded\n".to_owned();
    for number in 0..20 {
        let who = match number {
            0..9 => "7 1 7 true",
            9..12 => "8 2 8 true",
            12..16 => "500 0 500 false",
            _ => "0 0 0 false",
        };
        text.push_str(&format!("{} {who} wake_kswapd 0 true\n", 200 + number));
    }
    text
}

/// kcompactd: 10 wake-ups by kswapd, 10 by others, and one of another node. khugepaged: 3 of 4 huge pages, 4 of 8 ranges.
const MORE: &str = "\
== memory_work
ts pid start tid in_tree work node pages succeeded
";

fn handed_on() -> String {
    let mut text = MORE.to_owned();
    for number in 0..20 {
        let who = if number < 10 { "60 0 60 false" } else { "500 0 500 false" };
        text.push_str(&format!("{} {who} wake_kcompactd 0 0 true\n", 300 + number));
    }
    text.push_str("330 7 1 7 true wake_kcompactd 1 0 true\n");
    for number in 0..8 {
        let who = if number % 2 == 0 { "7 1 7 true" } else { "500 0 500 false" };
        text.push_str(&format!("{} {who} khugepaged_scan - 512 false\n", 400 + number));
    }
    for (number, (who, succeeded)) in [
        ("7 1 7 true", true),
        ("7 1 7 true", true),
        ("8 2 8 true", true),
        ("500 0 500 false", true),
        ("7 1 7 true", false),
    ]
    .into_iter()
    .enumerate()
    {
        text.push_str(&format!("{} {who} khugepaged_collapse - 512 {succeeded}\n", 420 + number));
    }
    text
}

fn pressed() -> String {
    [PRESSED, &faults(), &wake_ups(), &handed_on()].concat()
}

fn tables(text: &str) -> Tables {
    Tables::from_text(text).unwrap()
}

fn found(tables: &Tables) -> Option<Finding> {
    of_recordings(&[tables], None).into_iter().find(|finding| finding.name == background_reclaim::NAME)
}

fn rows<'a>(finding: &'a Finding, column: &str) -> Vec<&'a Row> {
    finding.evidence.iter().flat_map(|one| &one.rows).filter(|row| row.contains_key(column)).collect()
}

#[track_caller]
fn near(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-6), "{value:?}, expected {expected}");
}

#[test]
fn a_share_lies_between_what_two_ways_say_and_the_rest_is_others() {
    let tables = tables(&pressed());
    let facts = LaunchFacts::new(&tables);
    let memory = BackgroundReclaim::of(&facts).unwrap();
    let costs = memory.costs(memory.processes());
    let names: Vec<&str> = costs.iter().map(|one| one.thread.as_str()).collect();
    assert_eq!(names, ["kcompactd0", "khugepaged", "ksmd", "kswapd0"]);
    let ways = |number: usize| -> Vec<(Attribution, f64, f64)> {
        costs[number].ways.iter().map(|way| (way.way, way.of, way.all)).collect()
    };
    assert_eq!(ways(3), [(Attribution::WakeUps, 12.0, 20.0), (Attribution::AllocatedPages, 40.0, 100.0)]);
    // Ten wake-ups by kswapd are for 0.6 the program's.
    assert_eq!(ways(0), [(Attribution::WakeUps, 6.0, 20.0), (Attribution::AllocatedPages, 40.0, 100.0)]);
    assert_eq!(ways(1), [(Attribution::HugePages, 3.0, 4.0), (Attribution::ScannedRanges, 4.0, 8.0)]);
    assert_eq!((ways(2), costs[2].share), (vec![], None));
    let kswapd = &costs[3].cost;
    near(Some(kswapd.value), 10.0);
    near(kswapd.low, 8.0);
    near(kswapd.high, 12.0);
    let all = sum(&costs);
    near(Some(all.value), 10.0 + 3.5 + 5.0);
    near(all.low, 8.0 + 3.0 + 4.0);
    near(all.high, 12.0 + 4.0 + 6.0);
}

#[test]
fn pages_count_where_one_of_the_threads_that_need_them_ran() {
    let pages = |busy: &str| -> Vec<bool> {
        let mut changed = tables(&pressed());
        let threads = changed.manifest.memory_threads.as_mut().unwrap().threads.iter_mut();
        threads.filter(|one| one.name != busy).for_each(|one| one.cpu_time = Nanos(0));
        let facts = LaunchFacts::new(&changed);
        let memory = BackgroundReclaim::of(&facts).unwrap();
        let costs = memory.costs(memory.processes());
        costs.iter().map(|cost| cost.ways.iter().any(|way| way.way == Attribution::AllocatedPages)).collect()
    };
    assert_eq!((pages("kswapd0"), pages("kcompactd0")), (vec![true], vec![true]));
    assert_eq!((pages("khugepaged"), pages("ksmd")), (vec![false], vec![false]));
}

#[test]
fn shares_of_processes_add_up_to_that_of_all_and_never_exceed_the_threads_time() {
    let tables = tables(&pressed());
    let facts = LaunchFacts::new(&tables);
    let memory = BackgroundReclaim::of(&facts).unwrap();
    let each = memory.processes().iter().map(|one| memory.costs(&[*one].into()));
    let parts: f64 = each.flatten().flat_map(|cost| cost.ways).map(|way| way.share()).sum();
    let whole: f64 = memory.costs(memory.processes()).iter().flat_map(|cost| &cost.ways).map(|way| way.share()).sum();
    near(Some(parts), whole);
    // More pages than the machine gave out: a recording that contradicts itself.
    let few = Tables::from_text(&pressed().replace("\"pgalloc\": 100", "\"pgalloc\": 2")).unwrap();
    let facts = LaunchFacts::new(&few);
    let memory = BackgroundReclaim::of(&facts).unwrap();
    for cost in memory.costs(memory.processes()) {
        assert!(cost.cost.high.unwrap_or(cost.cost.value) <= cost.cpu_time.as_ms() + 1e-9, "{cost:?}");
    }
}

#[test]
fn the_finding_tells_what_is_the_programs_what_is_others_and_what_is_nobodys() {
    let finding = found(&tables(&pressed())).unwrap();
    near(Some(finding.cost.value), 18.5);
    assert_eq!((finding.cost.unit, finding.predicted_saving), (Unit::Ms, None));
    assert_eq!(finding.subject["process"], "video");
    assert_eq!(finding.subject["threads"], "kcompactd0, khugepaged, kswapd0");
    near(finding.subject["share"].as_f64(), 0.185);
    assert!(
        finding.title.contains("khugepaged make 3 huge pages") && finding.title.contains("18.5 %"),
        "{}",
        finding.title
    );
    let threads = rows(&finding, "cpu_ms");
    let of = |name: &str| *threads.iter().find(|row| row["thread"] == name).unwrap();
    near(of("kswapd0")["cost_ms"].as_f64(), 10.0);
    near(of("kswapd0")["others_ms"].as_f64(), 10.0);
    near(of("ksmd")["not_attributed_ms"].as_f64(), 3.0);
    assert!(of("ksmd")["share"].is_null());
    let counters: Vec<&Row> = rows(&finding, "counter");
    assert_eq!(counters.len(), 2, "{counters:?}");
    let processes = rows(&finding, "pid");
    assert_eq!(processes.iter().map(|row| row["pid"].as_u64().unwrap()).collect::<Vec<_>>(), [7, 8]);
    let parts: f64 = processes.iter().filter_map(|row| row["cost_ms"].as_f64()).sum();
    near(Some(parts), 18.5);
    assert_eq!(finding.fixes, [] as [&str; 0]);
    // kcompactd: 3 to 4, khugepaged: 4 to 6, kswapd: 8 to 12 ms.
    assert_eq!(finding.confidence, Confidence::High, "{:?}", finding.reasons);
}

#[test]
fn what_threads_do_themselves_is_reported_and_never_added() {
    let own = "== memory_work\nts duration pid start tid in_tree work pages succeeded\n\
               500 40000000 7 1 7 true group_reclaim 32 true\n501 20000000 7 1 7 true group_reclaim 8 false\n\
               502 - 7 1 7 true own_collapse 512 true\n503 9000000 500 0 500 true direct_reclaim 32 true\n";
    let both = tables(&[pressed().as_str(), own].concat());
    let finding = found(&both).unwrap();
    near(Some(finding.cost.value), 18.5);
    let facts = LaunchFacts::new(&both);
    let memory = BackgroundReclaim::of(&facts).unwrap();
    let direct: Vec<_> =
        memory.direct(memory.processes()).iter().map(|one| (one.work, one.count, one.time, one.pages)).collect();
    assert_eq!(
        direct,
        [
            (MemoryWorkKind::GroupReclaim, 2, Nanos(60_000_000), Pages(32)),
            (MemoryWorkKind::OwnCollapse, 1, Nanos(0), Pages(512)),
        ]
    );
    assert_eq!(rows(&finding, "own_ms").len(), 2);

    // Near miss: only its own context paid.
    let alone = PRESSED
        .replace("\"cpu_time\": 10000000", "\"cpu_time\": 0")
        .replace("8000000}", "0}")
        .replace("20000000}", "0}");
    assert_eq!(found(&tables(&[alone.as_str(), &faults(), own].concat())), None);
}

#[test]
fn a_thread_that_nobody_woke_is_nobodys_and_one_that_others_woke_is_theirs() {
    let facts_of = |text: &str| {
        let tables = tables(text);
        let facts = LaunchFacts::new(&tables);
        let memory = BackgroundReclaim::of(&facts).unwrap();
        memory
            .costs(memory.processes())
            .into_iter()
            .map(|one| (one.thread, one.ways.len(), one.cost.value))
            .collect::<Vec<_>>()
    };
    let costs = facts_of(&[PRESSED, &faults()].concat());
    let of =
        |name: &str| costs.iter().find(|(thread, ..)| thread == name).map(|(_, ways, cost)| (*ways, *cost)).unwrap();
    assert_eq!((of("kcompactd0"), of("khugepaged")), ((0, 0.0), (0, 0.0)));
    // kswapd was awake before: pages alone tell.
    assert_eq!(of("kswapd0"), (1, 8.0));
    let finding = found(&tables(&[PRESSED, &faults()].concat())).unwrap();
    assert_eq!((finding.confidence, finding.cost.low), (Confidence::Medium, None));
    assert!(finding.reasons.iter().any(|reason| reason.contains("by pages allocated only")), "{:?}", finding.reasons);

    // Near miss: the machine is busy, and this program has no part in it.
    let others = handed_on().replace("7 1 7 true", "501 0 501 false").replace("8 2 8 true", "501 0 501 false");
    let idle = PRESSED.replace("\"pgalloc\": 100", "\"pgalloc\": 100000000");
    assert_eq!(found(&tables(&[idle.as_str(), &faults(), &others].concat())), None);
}

#[test]
fn small_costs_are_no_finding_and_losses_lower_confidence() {
    let small = pressed().replace("20000000}", "200000}").replace("10000000}", "100000}").replace("8000000}", "80000}");
    assert_eq!(found(&tables(&small)), None);
    let beside_much = pressed().replace("60000000  21", "60000000000 21");
    assert_eq!(found(&tables(&beside_much)), None);

    let confidence = |edit: &dyn Fn(&mut Tables)| {
        let mut tables = tables(&pressed());
        edit(&mut tables);
        found(&tables).unwrap().confidence
    };
    let lost = |count: u64| move |tables: &mut Tables| tables.manifest.losses.add("memory_work", count);
    assert_eq!(confidence(&lost(20)), Confidence::Low);
    assert_eq!(confidence(&|tables| tables.manifest.ended = None), Confidence::Medium);
    // Five wake-ups, all by the program.
    let few = |tables: &mut Tables| {
        tables.memory_work.retain(|row| row.ts < Nanos(205) || row.work == MemoryWorkKind::KhugepagedCollapse);
    };
    assert_eq!(confidence(&few), Confidence::Medium);
    let without = |tables: &mut Tables| {
        tables.memory_work.clear();
        tables.manifest.probes.clear();
    };
    assert_eq!(confidence(&without), Confidence::Low);
}

#[test]
fn recordings_that_did_not_look_have_no_figure_and_those_that_saw_nothing_have_zero() {
    let costs = recorded_metrics(&tables(&pressed()));
    near(costs.totals.get(&Measure::BackgroundReclaim).copied(), 18.5);
    let mut idle = tables(&pressed());
    idle.memory_work.clear();
    idle.manifest.memory_threads.as_mut().unwrap().threads.iter_mut().for_each(|one| one.cpu_time = Nanos(0));
    near(recorded_metrics(&idle).totals.get(&Measure::BackgroundReclaim).copied(), 0.0);
    for edit in [(|tables| tables.manifest.memory_threads = None) as fn(&mut Tables), |tables| {
        tables.memory_work.clear();
        tables.manifest.probes.clear();
    }] {
        let mut blind = tables(&pressed());
        edit(&mut blind);
        let costs = recorded_metrics(&blind);
        assert_eq!(costs.totals.get(&Measure::BackgroundReclaim), None);
        assert!(!costs.sources.contains(&Source::BackgroundReclaim));
    }
}

#[test]
fn where_another_finding_says_which_blocks_to_keep_that_is_its_fix_too() {
    let mut text = pressed();
    text.push_str("== memory_calls\nts duration pid start tid call address length argument\n");
    for frame in 0..20u64 {
        let ts = 10_000 + frame * 10_000_000;
        text.push_str(&format!("{ts} 1000000 7 1 7 mmap 0x900000 1048576 0x22\n"));
        text.push_str(&format!("{} 1000000 7 1 7 munmap 0x900000 1048576 0\n", ts + 5_000_000));
    }
    text.push_str("== faults\nts duration pid start tid address kind\n");
    for frame in 0..20u64 {
        text.push_str(&format!("{} 1000000 7 1 7 0x900000 minor\n", frame * 10_000_000 + 2_000_000));
    }
    let finding = found(&tables(&text)).unwrap();
    assert_eq!(finding.fixes, ["reuse_buffer"]);
    let how: Vec<&Row> = rows(&finding, "how");
    assert!(how.iter().any(|row| row["how"].as_str().unwrap().contains("transient_large_allocation")), "{how:?}");
    assert!(finding.fix_inputs.way("reuse_buffer").unwrap().contains("transient_large_allocation"));
}

#[test]
fn its_measure_is_read_by_the_name_of_the_version_before() {
    let read = |text: &str| serde_json::from_str::<Measure>(text).unwrap();
    assert_eq!(read("\"deferred_memory_cost\""), Measure::BackgroundReclaim);
    assert_eq!(serde_json::to_string(&Measure::BackgroundReclaim).unwrap(), "\"background_reclaim\"");
}
