//! Sets of recordings with differences known by hand, as data and on a screen.

use slowpath_analysis::metrics::{Measure, recorded_metrics};
use slowpath_analysis::time::ledger::Category;
use slowpath_recording::{MemoryThread, MemoryThreads, Probe, ProbeState, Tables};
use slowpath_report::terminal::{Style, recording_comparison as printed};
use slowpath_report::{Basis, Change, Compared, FindingState, RecordingComparison, compare_recordings};
use slowpath_tables::{Bytes, MemoryCallKind, Nanos, Unit};

/// A launch of 1 s of a program that copies frames.
const VIDEO: &str = r#"
== manifest
{"command": ["/usr/bin/video", "call"], "started": 0, "ended": 1000000000,
 "launch": {"released": 0, "ready": 1000000000, "ready_when": "exit", "outcome": "ready"},
 "probes": [{"name": "fault", "state": "attached"}, {"name": "memory", "state": "attached"},
            {"name": "cpu_sample", "state": "attached"}, {"name": "off_cpu", "state": "attached"}],
 "counters": {"cpu_sample_hz": 1000}}
== execs
ts present pid start filename       command_line run_time min_flt
0  false   7   1     /usr/bin/video "video call" 0        0
== exits
ts         pid start tid last run_time min_flt
1000000000 7   1     7   true 50000000 0
== thread_counters
ts         pid start tid end   run_time
0          7   1     7   false 0
1000000000 7   1     7   true  50000000
== stacks
id parent frame
0  -      0
1  0      1
2  1      2
3  2      3
4  1      4
5  0      5
== frames
id kind dev ino offset
0  file 1   42  0x10
1  file 1   42  0x20
2  file 1   43  0x30
3  file 1   43  0x40
4  file 1   43  0x50
5  file 1   43  0x60
== symbols
frame level function
0     0     main
1     0     "(anonymous namespace)::copy_frame(unsigned char const*)"
2     0     malloc
3     0     mmap64
4     0     memcpy
5     0     munmap
== files
dev ino path
1   42  /usr/bin/video
1   43  /usr/lib/libc.so.6
== off_cpu
ts        duration  pid start tid reason runnable stack
500000000 310000000 7   1     7   poll   0        0
"#;

const COPY_FRAME: &str = "(anonymous namespace)::copy_frame(unsigned char const*)";

/// One recording with so many frames copied; every frame is mapped, touched, sampled twice and released.
fn video(frames: u64, edit: impl FnOnce(&mut Tables)) -> Compared {
    let mut text = VIDEO.to_owned();
    text.push_str("== cpu_samples\nts pid start tid kernel stack\n900000000 7 1 7 false 0\n");
    for frame in 0..frames {
        let ts = frame * 10_000_000;
        text.push_str(&format!("{} 7 1 7 true 4\n{} 7 1 7 false 4\n", ts + 1_500_000, ts + 1_600_000));
    }
    text.push_str("== memory_calls\nts duration pid start tid call address length argument stack\n");
    for frame in 0..frames {
        let ts = frame * 10_000_000;
        text.push_str(&format!("{ts} 100000 7 1 7 mmap 0x100000 1048576 0x22 3\n"));
        text.push_str(&format!("{} 200000 7 1 7 munmap 0x100000 1048576 0 5\n", ts + 5_000_000));
    }
    text.push_str("== faults\nts duration pid start tid address kind stack\n");
    for frame in 0..frames {
        text.push_str(&format!("{} 1000000 7 1 7 0x100000 minor 4\n", frame * 10_000_000 + 1_000_000));
    }
    let mut tables = Tables::from_text(&text).unwrap();
    edit(&mut tables);
    Compared { recording: format!("of {frames}"), costs: recorded_metrics(&tables) }
}

fn plain(frames: u64) -> Compared {
    video(frames, |_| ())
}

fn total(comparison: &RecordingComparison, measure: Measure) -> Option<Change> {
    comparison.totals.iter().find(|one| one.measure == measure).map(|one| one.change)
}

fn function(comparison: &RecordingComparison, name: &str, measure: Measure) -> Option<Change> {
    let mut functions = comparison.functions.iter();
    let is_meant =
        |one: &&slowpath_report::FunctionChange| one.function.as_deref() == Some(name) && one.measure == measure;
    functions.find(is_meant).map(|one| one.change)
}

#[track_caller]
fn is(change: Option<Change>, before: f64, after: f64) {
    let change = change.expect("it is compared");
    for (value, expected) in
        [(change.before.value, before), (change.after.value, after), (change.difference.value, after - before)]
    {
        assert!((value - expected).abs() < 1e-9, "{change:?}");
    }
}

fn gap<'a>(comparison: &'a RecordingComparison, words: &str) -> Option<&'a str> {
    comparison.gaps.iter().find(|gap| gap.what.contains(words)).map(|gap| gap.reason.as_str())
}

#[test]
fn what_a_function_no_longer_does_is_zero_and_what_it_did_is_told_by_kind() {
    let comparison = compare_recordings(&[plain(20)], &[plain(0)], false);
    assert_eq!(comparison.per, Basis::Recording);
    is(function(&comparison, COPY_FRAME, Measure::SampledCpuTime), 40.0, 0.0);
    is(function(&comparison, COPY_FRAME, Measure::Allocations), 20.0, 0.0);
    is(function(&comparison, COPY_FRAME, Measure::AllocatedBytes), 20.0 * 1_048_576.0, 0.0);
    is(function(&comparison, COPY_FRAME, Measure::FaultTime), 20.0, 0.0);
    is(function(&comparison, "main", Measure::SampledCpuTime), 1.0, 1.0);
    is(function(&comparison, "main", Measure::ReleaseTime), 4.0, 0.0);
    is(total(&comparison, Measure::Faults), 20.0, 0.0);
    is(total(&comparison, Measure::Releases), 20.0, 0.0);
    is(total(&comparison, Measure::SampledKernelTime), 20.0, 0.0);
    is(total(&comparison, Measure::CpuTime), 50.0, 50.0);
    assert_eq!(total(&comparison, Measure::KernelThreadTime), None);
    assert_eq!(gap(&comparison, "kernel's own threads"), Some("recorded on neither side"));
    // One recording each says nothing of chance.
    assert!(!comparison.has_intervals && comparison.notes[0].starts_with("one recording each: no interval"));
    assert_eq!(total(&comparison, Measure::Faults).unwrap().difference.low, None);
    assert_eq!(total(&comparison, Measure::CpuTime).unwrap().ratio.unwrap().value, 1.0);
    // The ledger has the faults and calls of the one thread.
    let row = |category| {
        let rows = comparison.ledger.iter().find(|one| one.program.is_none() && one.category == Some(category));
        rows.map(|one| one.change)
    };
    is(row(Category::MinorFault), 20.0, 0.0);
    is(row(Category::Events), 310.0, 310.0);
    let of_program = comparison.ledger.iter().filter(|one| one.program.as_deref() == Some("video")).count();
    assert_eq!(of_program * 2, comparison.ledger.len(), "{:?}", comparison.ledger);
}

#[test]
fn a_finding_that_is_gone_is_said_to_be_only_where_it_could_have_been_seen() {
    let comparison = compare_recordings(&[plain(20)], &[plain(0)], false);
    let [finding] = comparison.findings.as_slice() else { panic!("{:?}", comparison.findings) };
    assert_eq!((finding.name.as_str(), finding.state), ("transient_large_allocation", FindingState::Gone));
    assert_eq!((finding.function.as_deref(), finding.found_before, finding.found_after), (Some(COPY_FRAME), 1, 0));
    // 1.3 ms a frame.
    assert!((finding.before.unwrap().value - 26.0).abs() < 1e-6, "{finding:?}");
    assert_eq!((finding.after, finding.difference), (None, None));
    assert_eq!(compare_recordings(&[plain(0)], &[plain(20)], false).findings[0].state, FindingState::New);

    let blind = video(20, |tables| {
        tables.memory_calls.clear();
        tables.manifest.probes.retain(|probe| probe.name != "memory");
    });
    let comparison = compare_recordings(&[plain(20)], &[blind], false);
    assert_eq!(comparison.findings[0].state, FindingState::Unknown);

    let both = compare_recordings(&[plain(20)], &[plain(40)], false);
    assert_eq!(both.findings[0].state, FindingState::Both);
    assert!((both.findings[0].difference.unwrap().value - 26.0).abs() < 1e-6, "{:?}", both.findings);
}

#[test]
fn sets_have_intervals_from_four_recordings_each_on() {
    let set = |frames: [u64; 4]| frames.map(plain);
    let comparison = compare_recordings(&set([20, 21, 22, 23]), &set([10, 11, 12, 13]), false);
    assert!(comparison.has_intervals);
    let faults = total(&comparison, Measure::Faults).unwrap();
    assert_eq!((faults.before.value, faults.after.value), (21.5, 11.5));
    assert_eq!(
        (faults.difference.low, faults.difference.value, faults.difference.high),
        (Some(-13.0), -10.0, Some(-7.0))
    );
    assert_eq!(faults.difference.unit, Unit::Count);
    assert!(faults.ratio.unwrap().high.unwrap() < 1.0);
    let finding = &comparison.findings[0];
    assert_eq!((finding.found_before, finding.found_after), (4, 4));
    assert!(finding.difference.unwrap().high.unwrap() < 0.0);

    let three = compare_recordings(&set([20, 21, 22, 23])[..3], &set([10, 11, 12, 13])[..3], false);
    assert!(!three.has_intervals && three.notes[0].contains("3 and 3 recordings are too few"), "{:?}", three.notes);
    assert_eq!(total(&three, Measure::Faults).unwrap().difference.low, None);
    assert_eq!(total(&three, Measure::Faults).unwrap().difference.value, -10.0);
    // A finding that only some have has no difference.
    let some = compare_recordings(&set([20, 21, 22, 0]), &set([20, 21, 22, 23]), false);
    assert_eq!((some.findings[0].found_before, some.findings[0].difference), (3, None));
}

#[test]
fn launches_are_compared_whole_and_others_by_the_second_where_lengths_differ() {
    let running = |frames: u64, seconds: u64| {
        video(frames, move |tables| {
            tables.manifest.launch = None;
            tables.manifest.command = vec!["video (7)".to_owned()];
            tables.manifest.ended = Some(Nanos(seconds * 1_000_000_000));
        })
    };
    let comparison = compare_recordings(&[running(20, 1)], &[running(20, 2)], false);
    assert_eq!(comparison.per, Basis::Second);
    assert!(comparison.per_reason.contains("1.00 to 2.00 s"), "{}", comparison.per_reason);
    is(total(&comparison, Measure::Faults), 20.0, 10.0);
    is(function(&comparison, COPY_FRAME, Measure::SampledCpuTime), 40.0, 20.0);
    assert!((comparison.findings[0].difference.unwrap().value + 13.0).abs() < 1e-6);
    assert!(printed(&comparison, &Style::PLAIN).contains("10/s"), "{}", printed(&comparison, &Style::PLAIN));

    assert_eq!(compare_recordings(&[running(20, 2)], &[running(20, 2)], false).per, Basis::Recording);
    assert_eq!(compare_recordings(&[running(20, 2)], &[running(20, 2)], true).per, Basis::Second);
    let longer = video(20, |tables| {
        let launch = tables.manifest.launch.as_mut().unwrap();
        launch.ready = Some(Nanos(2_000_000_000));
        tables.manifest.ended = launch.ready;
    });
    let launches = compare_recordings(&[plain(20)], std::slice::from_ref(&longer), false);
    assert_eq!(launches.per, Basis::Recording);
    is(total(&launches, Measure::Faults), 20.0, 20.0);
    is(total(&launches, Measure::TimeToReady), 1000.0, 2000.0);
    let by_second = compare_recordings(&[plain(20)], &[longer], true);
    is(total(&by_second, Measure::Faults), 20.0, 10.0);
    is(total(&by_second, Measure::TimeToReady), 1000.0, 2000.0);
    let mixed = compare_recordings(&[plain(20)], &[running(20, 1)], false);
    assert!(gap(&mixed, "one workload").is_some_and(|reason| reason.contains("before (of 20)")), "{:?}", mixed.gaps);
}

#[test]
fn what_one_side_did_not_record_is_a_gap_and_never_zero() {
    let without = |edit: fn(&mut Tables)| compare_recordings(&[plain(20)], &[video(20, edit)], false);
    let calls = without(|tables| {
        tables.memory_calls.clear();
        tables.manifest.probes.retain(|probe| probe.name != "memory");
    });
    assert_eq!(total(&calls, Measure::Allocations), None);
    assert_eq!(function(&calls, COPY_FRAME, Measure::AllocatedBytes), None);
    assert_eq!(gap(&calls, "allocations"), Some("not recorded in after (of 20)"));
    assert_eq!(gap(&calls, "allocations by function"), None, "it follows from the other");
    assert!(gap(&calls, "the program alone").is_some(), "{:?}", calls.gaps);
    // What is part of kernel time on one side is so on both.
    let is_memory_call = |one: &slowpath_report::LedgerChange| one.category == Some(Category::MemoryCall);
    assert!(!calls.ledger.iter().any(is_memory_call), "{:?}", calls.ledger);

    let stacks = without(|tables| tables.faults.iter_mut().for_each(|row| row.stack = None));
    assert_eq!(function(&stacks, COPY_FRAME, Measure::FaultTime), None);
    is(total(&stacks, Measure::FaultTime), 20.0, 20.0);
    assert_eq!(gap(&stacks, "page faults by function"), Some("not recorded in after (of 20)"));

    let lost = without(|tables| tables.manifest.losses.add("faults", 3));
    assert_eq!(gap(&lost, "complete figures"), Some("after (of 20): lost events: faults 3"));
    let endless = without(|tables| tables.manifest.ended = None);
    assert!(gap(&endless, "complete figures").is_some_and(|reason| reason.contains("no end")), "{:?}", endless.gaps);
    let other = without(|tables| tables.manifest.command = vec!["/usr/bin/other".to_owned()]);
    assert!(gap(&other, "one workload").is_some_and(|reason| reason.contains("other, video")), "{:?}", other.gaps);
    let machine = without(|tables| tables.manifest.host.cpus = 64);
    assert!(gap(&machine, "one machine").is_some_and(|reason| reason.contains("64 CPUs")), "{:?}", machine.gaps);
    assert!(gap(&compare_recordings(&[plain(20)], &[plain(20)], false), "one ").is_none());
}

#[test]
fn the_screen_has_the_three_lines_of_the_hidden_costs_and_fits_its_columns() {
    let text = printed(&compare_recordings(&[plain(20)], &[plain(0)], false), &Style::PLAIN);
    let words: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let has = |line: &str| assert!(words.iter().any(|one| one.starts_with(line)), "{line}: {text}");
    has("copy_frame 40.0 ms 0 ms -40.0 ms (-100 %)");
    has("copy_frame 21.0 MB 0 B -21.0 MB (-100 %)");
    has("calls 20 0 -20 (-100 %)");
    has("page faults 20 0 -20 (-100 %)");
    has("memory given back, calls 20 0 -20");
    has("time in them 4.00 ms 0 ms -4.00 ms");
    has("transient_large_allocation 26.0 ms - gone");
    has("Not recorded: the kernel's own threads (record with --system)");
    has("Note: one recording each: no interval");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");

    let many = |frames: u64| video(frames, |tables| tables.manifest.command.push("x\u{1b}[31m\u{202e}".repeat(40)));
    let sets = compare_recordings(&[20, 21, 22, 23].map(many), &[10, 11, 12, 13].map(many), false);
    let style = Style { unicode: true, colour: true, ..Style::PLAIN };
    let coloured = printed(&sets, &style);
    assert!(coloured.contains("\x1b[32m−10 (−13…−7)"), "{coloured}");
    assert!(!coloured.contains("\x1b[31m\u{202e}") && !coloured.contains('\u{202e}'), "{coloured}");
    let text = printed(&sets, &Style::PLAIN);
    assert!(text.contains("change (95 % interval)") && text.lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn a_large_block_more_is_more_and_no_finding() {
    let grown = video(0, |tables| {
        let mut call = Tables::from_text(
            "== memory_calls\nts duration pid start tid call address length argument stack\n\
             5 100 7 1 7 mmap 0x100000 4096 0x22 3\n",
        )
        .unwrap()
        .memory_calls
        .remove(0);
        call.length = Bytes(64 << 20);
        assert_eq!(call.call, MemoryCallKind::Mmap);
        tables.memory_calls.push(call);
    });
    let comparison = compare_recordings(&[plain(0)], &[grown], false);
    is(function(&comparison, COPY_FRAME, Measure::AllocatedBytes), 0.0, 67_108_864.0);
    assert_eq!(total(&comparison, Measure::AllocatedBytes).unwrap().ratio, None);
    assert!(comparison.findings.is_empty());
}

#[test]
fn background_reclaim_is_told_also_where_it_is_zero_and_is_a_gap_where_a_side_did_not_look() {
    // The 20 pages of the frames are half of all pages that the machine gave out.
    let with = |ms: u64| {
        video(20, move |tables| {
            tables.manifest.probes.push(Probe { name: "memory_work".to_owned(), state: ProbeState::Attached });
            let kswapd = MemoryThread { name: "kswapd0".to_owned(), pid: 60, cpu_time: Nanos(ms * 1_000_000) };
            let counters = [("pgalloc".to_owned(), 40)].into();
            tables.manifest.memory_threads = Some(MemoryThreads { threads: vec![kswapd], counters });
        })
    };
    let gone = compare_recordings(&[with(36)], &[with(0)], false);
    is(total(&gone, Measure::BackgroundReclaim), 18.0, 0.0);
    let text = printed(&gone, &Style::PLAIN);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |start: &str| assert!(text.lines().any(|line| words(line).starts_with(start)), "{start}: {text}");
    has("background reclaim 18.0 ms 0 ms -18.0 ms (-100 %)");
    has("background_reclaim 18.0 ms - gone");
    is(total(&compare_recordings(&[with(0)], &[with(0)], false), Measure::BackgroundReclaim), 0.0, 0.0);

    let blind = compare_recordings(&[with(36)], &[plain(20)], false);
    assert_eq!(total(&blind, Measure::BackgroundReclaim), None);
    assert_eq!(gap(&blind, "the cost of background reclaim"), Some("not recorded in after (of 20)"));
    let finding = blind.findings.iter().find(|one| one.name == "background_reclaim").unwrap();
    assert_eq!((finding.state, finding.former_name.as_deref()), (FindingState::Unknown, Some("deferred_memory_cost")));
}
