//! What a recording cost, figure by figure, on recordings with answers known by hand.

use slowpath_analysis::findings::transient_large_allocation;
use slowpath_analysis::metrics::{Measure, RecordedMetrics, Source, recorded_metrics};
use slowpath_analysis::stacks::attribution::AttributedFunction;
use slowpath_analysis::time::ledger::Category;
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, Nanos};

/// A launch of 2 s: `copy_frame` allocates twice, touches and copies; `main` frees. Two faults have no duration and no stack.
const LAUNCH: &str = r#"
== manifest
{"command": ["/usr/bin/video", "call"], "started": 0, "ended": 3000000000,
 "launch": {"released": 1000000000, "ready": 3000000000, "ready_when": "exit", "outcome": "ready"},
 "probes": [{"name": "fault", "state": "attached"}, {"name": "memory", "state": "attached"},
            {"name": "cpu_sample", "state": "attached"}, {"name": "first_wait", "state": "unavailable"}],
 "counters": {"cpu_sample_hz": 500}}
== execs
ts present pid start filename       command_line run_time min_flt
1  false   7   1     /usr/bin/video "video call" 0        10
== forks
ts parent_pid parent_start pid start tid thread
2  7          1            8   2     8   false
== exits
ts pid start tid last run_time min_flt
9  7   1     7   true 70000000 30
9  8   2     8   true 5000000  4
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
1     0     copy_frame
2     0     malloc
3     0     mmap64
4     0     memcpy
5     0     munmap
== files
dev ino path
1   42  /usr/bin/video
1   43  /usr/lib/libc.so.6
== faults
ts duration pid start kind  stack
10 3000000  7   1     minor 4
11 1000000  7   1     minor 4
12 500000   8   2     minor 0
13 -        7   1     minor -
14 -        7   1     major -
== cpu_samples
ts pid start kernel stack
10 7   1     true   4
11 7   1     false  4
12 7   1     false  0
13 8   2     false  0
== memory_calls
ts duration pid start call    address  length  stack argument result shrinks
10 1000000  7   1     mmap    0x10000  1000000 3     0x22     0      false
11 2000000  7   1     mmap    0x200000 1000000 3     0x22     0      false
12 4000000  7   1     munmap  0x10000  1000000 5     0        0      false
13 500000   7   1     munmap  0x200000 1000000 5     0        -22    false
14 250000   7   1     madvise 0x200000 4096    5     4        0      false
15 250000   7   1     madvise 0x200000 4096    5     3        0      false
16 100000   7   1     brk     0x900000 5000    3     0        0      false
17 100000   7   1     brk     0x800000 5000    5     0        0      true
18 50000    7   1     mmap    0x400000 9000000 3     0x4022   0      false
"#;

fn costs(text: &str) -> RecordedMetrics {
    recorded_metrics(&Tables::from_text(text).unwrap())
}

fn function(costs: &RecordedMetrics, name: Option<&str>, place: &str, measure: Measure) -> Option<f64> {
    let function = AttributedFunction { function: name.map(str::to_owned), place: place.to_owned() };
    costs.functions.get(&(function, measure)).copied()
}

#[track_caller]
fn near(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?}, expected {expected}");
}

#[test]
fn figures_of_the_whole_are_sums_of_rows_and_counters() {
    let costs = costs(LAUNCH);
    assert_eq!((costs.program.as_str(), costs.length, costs.is_launch), ("video", Nanos(2_000_000_000), true));
    let expected = [
        (Measure::TimeToReady, 2000.0),
        (Measure::CpuTime, 75.0),
        (Measure::SampledCpuTime, 8.0),
        (Measure::SampledKernelTime, 2.0),
        (Measure::Faults, 5.0),
        (Measure::FaultsByKernel, 24.0),
        (Measure::FaultTime, 4.5),
        (Measure::Allocations, 3.0),
        (Measure::AllocatedBytes, 2_005_000.0),
        (Measure::MapTime, 3.4),
        (Measure::Releases, 3.0),
        (Measure::ReleaseTime, 4.85),
    ];
    for (measure, value) in expected {
        near(costs.totals.get(&measure).copied(), value);
    }
    assert_eq!(costs.totals.len(), expected.len(), "{:?}", costs.totals);
    let program = |measure| costs.programs.get(&("video".to_owned(), measure)).copied();
    near(program(Measure::CpuTime), 75.0);
    near(program(Measure::Faults), 5.0);
    near(program(Measure::AllocatedBytes), 2_005_000.0);
    assert_eq!(program(Measure::OffCpuTime), None);
}

#[test]
fn functions_have_what_libraries_and_the_kernel_did_for_them() {
    let costs = costs(LAUNCH);
    let copy = |measure| function(&costs, Some("copy_frame"), "video", measure);
    let main = |measure| function(&costs, Some("main"), "video", measure);
    near(copy(Measure::SampledCpuTime), 4.0);
    near(main(Measure::SampledCpuTime), 4.0);
    near(copy(Measure::FaultTime), 4.0);
    near(copy(Measure::Faults), 2.0);
    near(copy(Measure::Allocations), 3.0);
    near(copy(Measure::AllocatedBytes), 2_005_000.0);
    assert_eq!(copy(Measure::Releases), None);
    near(main(Measure::Releases), 3.0);
    near(main(Measure::ReleaseTime), 4.85);
    near(function(&costs, None, "[no stack]", Measure::Faults), 2.0);
    assert_eq!(main(Measure::OffCpuTime), None);
}

#[test]
fn what_was_not_recorded_is_no_source_and_what_happened_not_is_one() {
    let found = costs(LAUNCH);
    let lacking: Vec<Source> = Source::ALL.into_iter().filter(|source| !found.sources.contains(source)).collect();
    assert_eq!(
        lacking,
        [Source::Waits, Source::WaitStacks, Source::Ledger, Source::KernelThreads, Source::BackgroundReclaim]
    );
    assert_eq!(found.probes.iter().map(String::as_str).collect::<Vec<_>>(), ["cpu_sample", "fault", "memory"]);
    assert!(found.doubts.iter().any(|doubt| doubt.contains("40.0 % of the page faults")), "{:?}", found.doubts);

    let mut silent = Tables::from_text(LAUNCH).unwrap();
    silent.memory_calls.clear();
    silent.cpu_samples.clear();
    silent.faults.clear();
    let silent = recorded_metrics(&silent);
    assert_eq!(silent.sources, found.sources);
    assert_eq!(silent.totals.get(&Measure::Allocations), Some(&0.0));
    assert!(silent.functions.is_empty());

    let mut without = Tables::from_text(LAUNCH).unwrap();
    without.memory_calls.iter_mut().for_each(|call| call.stack = None);
    without.manifest.counters.clear();
    without.faults.iter_mut().for_each(|fault| fault.duration = None);
    let without = recorded_metrics(&without);
    for source in [Source::MemoryCallStacks, Source::Samples, Source::SampleStacks, Source::FaultTimes] {
        assert!(!without.sources.contains(&source), "{source:?}");
    }
    assert_eq!(without.totals.get(&Measure::SampledCpuTime), None);
    assert!(without.functions.keys().all(|(_, measure)| *measure == Measure::Faults), "{:?}", without.functions);
}

#[test]
fn running_processes_are_called_without_their_pids_and_the_kernels_threads_are_their_own() {
    let text = r#"
== manifest
{"command": ["video (77), camera (9)"], "started": 1000000000, "ended": 5000000000, "losses": {"faults": 3}}
== execs
ts present pid start parent_pid filename     command_line run_time
1  true    2   1     0          kthreadd     ""           0
1  true    30  1     2          kworker/0:1  ""           1000000
1  true    31  1     2          kworker/1:2h ""           2000000
1  true    40  1     1          zombie       ""           0
== exits
ts pid start tid last  run_time running
9  2   1     2   false 0        true
9  30  1     30  false 4000000  true
9  31  1     31  false 9000000  true
9  40  1     40  false 500000   true
"#;
    let costs = costs(text);
    assert_eq!((costs.program.as_str(), costs.is_launch), ("video camera", false));
    assert_eq!(costs.length, Nanos(4_000_000_000));
    near(costs.totals.get(&Measure::KernelThreadTime).copied(), 10.0);
    near(costs.totals.get(&Measure::CpuTime).copied(), 10.5);
    near(costs.programs.get(&("[kworker]".to_owned(), Measure::CpuTime)).copied(), 10.0);
    near(costs.programs.get(&("zombie".to_owned(), Measure::CpuTime)).copied(), 0.5);
    assert_eq!(costs.losses.of("faults"), 3);
}

#[test]
fn the_ledger_is_added_up_by_program_and_a_finding_is_known_by_its_function() {
    let mut tables = Tables::from_text(LAUNCH).unwrap();
    tables.append(
        Tables::from_text(
            "== off_cpu\nts duration pid start tid reason runnable\n100 3000000 7 1 7 timer 1000000\n\
             == thread_counters\nts pid start tid end run_time\n1 7 1 7 false 0\n9000000 7 1 7 true 4000000\n",
        )
        .unwrap(),
    );
    tables.exits.iter_mut().for_each(|exit| exit.ts = Nanos(9_000_000));
    // A frame of 1 MB every 10 ms, of which each fault takes 2 ms.
    let (call, fault) = (tables.memory_calls[0].clone(), tables.faults[0].clone());
    tables.memory_calls.clear();
    tables.faults.clear();
    for frame in 0..20u64 {
        let mut mapped = call.clone();
        (mapped.ts, mapped.address, mapped.length) = (Nanos(frame * 10_000_000), 0x10_0000, Bytes(1 << 20));
        let mut touched = fault.clone();
        (touched.ts, touched.address, touched.duration) =
            (mapped.ts + Nanos(1_500_000), 0x10_1000, Some(Nanos(2_000_000)));
        let mut unmapped = mapped.clone();
        (unmapped.call, unmapped.ts, unmapped.stack) =
            (slowpath_tables::MemoryCallKind::Munmap, mapped.ts + Nanos(5_000_000), Some(5));
        tables.memory_calls.extend([mapped, unmapped]);
        tables.faults.push(touched);
    }
    let costs = recorded_metrics(&tables);
    assert!(costs.sources.contains(&Source::Ledger));
    let row = |category| costs.ledger.get(&("video".to_owned(), Some(category))).copied();
    near(row(Category::Timer), 2.0);
    near(row(Category::Runnable), 1.0);
    let found: Vec<_> = costs.findings.iter().collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let (key, cost) = found[0];
    assert_eq!((key.name.as_str(), key.program.as_str()), (transient_large_allocation::NAME, "video"));
    assert_eq!(key.function.as_deref(), Some("copy_frame"));
    // Twenty times 2 ms in a fault and 1 ms in each call.
    assert!((cost.cost.value - 80.0).abs() < 1e-6 && cost.grows_with_time, "{cost:?}");
}
