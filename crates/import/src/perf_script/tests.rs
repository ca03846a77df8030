use super::IMPORT;
use crate::foreign::import_bytes;
use crate::registry::detected;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;
use slowpath_tables::{FaultKind, FrameKind, OffCpuReason, Unavailable};

pub(crate) const TRACE: &str = "\
# nrcpus online : 2
# os release : 6.1.0
app   100/100   [000]    10.000001: PERF_RECORD_COMM exec: app:100/100
app   100/100   [000]    10.000002: PERF_RECORD_MMAP2 100/100: [0x400000(0x2000) @ 0x1000 fe:01 77 0]: r-xp /opt/app
app   100/100   [000]    10.000100:    1000000 cpu-clock:ppp: \n\
\t          400010 fold(int, (x))+0x10 (/opt/app)
\t          400100 main+0x0 (/opt/app)

app   100/100   [000]    10.001100:    1000000 cpu-clock:ppp: \n\
\tffffffff81000010 clear_page+0x10 ([kernel.kallsyms])
\tffffffff81000020 asm_exc_page_fault+0x0 ([kernel.kallsyms])
\t          400020 fold(int, (x))+0x20 (/opt/app)
\t          400100 main+0x0 (/opt/app)

app   100/100   [000]    10.001200:          1 minor-faults:u:     7f0000001000 [unknown] ([unknown])
\t          400020 fold(int, (x))+0x20 (/opt/app)

app   100/100   [000]    10.002000: PERF_RECORD_FORK(100:101):(100:100)
app   100/101   [001]    10.003000: sched:sched_switch: app:101 [120] S ==> swapper/1:0 [120]
\tffffffff81000030 __schedule+0x0 ([kernel.kallsyms])
\tffffffff81000040 futex_wait_queue+0x0 ([kernel.kallsyms])
\t          400200 wait+0x0 (/opt/app)

app   100/100   [000]    10.004000: sched:sched_wakeup: app:101 [120] CPU:001
swapper     0/0     [001]    10.004500: sched:sched_switch: swapper/1:0 [120] R ==> app:101 [120]
app   100/101   [001]    10.005000: PERF_RECORD_EXIT(100:101):(100:100)
app   100/100   [000]    10.006000: PERF_RECORD_LOST lost 12
app   100/100   [000]    10.007000: kmem:kfree: call_site=1 ptr=0
";

#[test]
fn samples_faults_and_waits_have_their_stacks_and_files() {
    assert_eq!(detected(TRACE.as_bytes()).map(|one| one.name), Some("perf"));
    let (tables, problem) = import_bytes("perf", TRACE.as_bytes());
    assert_eq!(problem, None);
    let stacks = CallStacks::new(&tables);
    let names = |stack| {
        let frames = stacks.outermost_first(stacks.path(stack).unwrap());
        frames.into_iter().map(|at| stacks.frames()[at as usize].functions[0].name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(tables.cpu_samples[0].stack), ["main", "fold(int, (x))"]);
    assert_eq!(names(tables.cpu_samples[1].stack), ["main", "fold(int, (x))", "asm_exc_page_fault", "clear_page"]);
    assert_eq!((tables.cpu_samples[0].kernel, tables.cpu_samples[1].kernel), (false, true));
    assert_eq!(tables.manifest.cpu_sample_hz(), Some(1000));
    let frame = tables.frames.iter().find(|frame| frame.kind == FrameKind::File && frame.offset.is_some()).unwrap();
    // The trace knows device and inode, and where the file is mapped.
    assert_eq!((frame.dev, frame.ino), (Some(0xfe << 20 | 1), Some(77)));
    assert!(tables.frames.iter().any(|frame| frame.offset.is_some_and(|offset| offset.0 == 0x1010)));
    let fault = &tables.faults[0];
    assert_eq!((fault.kind, fault.address, fault.ip), (FaultKind::Minor, 0x7f00_0000_1000, 0x40_0020));
    let wait = &tables.off_cpu[0];
    assert_eq!(
        (wait.tid, wait.reason, wait.duration.0, wait.runnable.0),
        (101, OffCpuReason::Futex, 1_500_000, 500_000)
    );
    assert_eq!((wait.waker_pid, wait.waker_tid), (Some(100), Some(100)));
    assert_eq!((tables.forks.len(), tables.forks[0].thread), (1, true));
}

#[test]
fn the_manifest_says_what_the_trace_lost_and_what_it_cannot_hold() {
    let (tables, _) = import_bytes("perf", TRACE.as_bytes());
    let manifest = &tables.manifest;
    assert_eq!((manifest.host.cpus, manifest.host.kernel.as_str()), (2, "6.1.0"));
    assert_eq!((manifest.losses.0.get("perf.any"), manifest.losses.of("off_cpu")), (Some(&12), 12));
    assert_eq!(manifest.counters.get("not_imported.kfree"), Some(&1));
    let gaps: Vec<&str> = manifest.unavailable.iter().map(|gap| gap.what.as_str()).collect();
    assert!(gaps.contains(&"probe memory") && gaps.contains(&"probe page_cache"), "{gaps:?}");
    assert!(!gaps.contains(&"probe fault") && !gaps.contains(&"probe off_cpu"), "{gaps:?}");
}

/// The recording of these lines.
fn imported(text: &str) -> Tables {
    let (tables, problem) = import_bytes("perf", text.as_bytes());
    assert_eq!(problem, None);
    tables
}

fn gap<'a>(tables: &'a Tables, what: &str) -> Option<&'a Unavailable> {
    tables.manifest.unavailable.iter().find(|gap| gap.what.contains(what))
}

#[test]
fn a_sample_of_page_faults_stands_for_as_many_as_its_period_says() {
    let line =
        |ts: u32, faults: &str, event: &str| format!("app 100/100 [000] 10.{ts}: {faults} {event}:  7f01 x (y)\n");
    let (what, event) = ("the page faults between samples", "minor-faults");
    for event in [event, "major-faults:u", "page-faults", "faults:k"] {
        let tables = imported(&[line(1, "1", event), line(2, "125", event)].concat());
        assert_eq!((tables.faults.len(), tables.manifest.losses.of("faults")), (2, 124), "{event}");
        assert!(gap(&tables, what).is_some_and(|gap| gap.remedy.contains("-c 1")), "{event}");
    }
    let whole = imported(&line(1, "1", event));
    assert_eq!((whole.manifest.losses.of("faults"), gap(&whole, what)), (0, None));
    // Of what is not printed nobody knows how much it is.
    let unknown = imported(&line(1, "", event));
    assert_eq!((unknown.faults.len(), unknown.manifest.losses.of("faults")), (1, 0));
    assert!(gap(&unknown, what).is_some_and(|gap| gap.remedy.contains("+period")));
}

#[test]
fn samples_of_one_event_are_the_cpu_samples_and_a_clock_goes_first_where_the_head_names_it() {
    let line = |ts: u32, event: &str| format!("app 100/100 [000] 10.{ts}: 1000000 {event}:  401 x (y)\n");
    let lines = [line(1, "cpu_core/cycles/P"), line(2, "cpu-clock:u"), line(3, "cpu_atom/cycles/P")].concat();
    let taken = |tables: &Tables| {
        let at = tables.cpu_samples.iter().map(|row| (row.ts.0 - 10_000_000_000) / 100_000_000).collect::<Vec<_>>();
        let left_out = ["cycles", "cpu-clock"].map(|event| format!("not_imported.{event}"));
        (at, left_out.map(|name| tables.manifest.counters.get(&name).copied()), tables.manifest.cpu_sample_hz())
    };
    let first = imported(&lines);
    assert_eq!(taken(&first), (vec![1, 3], [None, Some(1)], None));
    assert!(gap(&first, "the CPU samples of further events").is_some());
    let head = "# event : name = cpu_core/cycles/P, , id = { 5, 6 }, type = 4 (cpu_core), size = 136\n\
                # event : name = cpu-clock:u, , id = { 7, 8 }, type = 1 (PERF_TYPE_SOFTWARE), size = 136\n";
    let named = imported(&format!("{head}{lines}"));
    assert_eq!(taken(&named), (vec![2], [Some(2), None], Some(1000)));
    // In the line that names cpu_core/instructions/ stands no sample of the CPU.
    let other = imported(&line(1, "cpu_core/instructions/"));
    assert_eq!((other.cpu_samples.len(), gap(&other, "the CPU samples of further events")), (0, None));
}

#[test]
fn what_perf_lost_is_read_as_it_prints_it_and_may_be_of_every_kind() {
    assert!(IMPORT.made_by.contains("--show-lost-events"));
    // As perf_event__fprintf_lost of perf prints it; without a number it is one at least.
    let lines = "python3    1234/1235    [001]    12.345678901: PERF_RECORD_LOST lost 40\n\
                 :-1      -1/-1      [002]    12.400000: PERF_RECORD_LOST lost 2\n\
                 swapper        0/0        [000]     0.000000: PERF_RECORD_LOST\n";
    let losses = imported(lines).manifest.losses;
    assert_eq!([losses.of("faults"), losses.of("off_cpu"), losses.total()], [43; 3]);
}

#[test]
fn a_trace_without_wake_ups_says_that_run_queue_delay_is_not_known() {
    assert!(gap(&imported(TRACE), "the wake-ups of threads").is_none());
    let without: String = TRACE.split_inclusive('\n').filter(|line| !line.contains("sched_wakeup")).collect();
    let tables = imported(&without);
    assert_eq!((tables.off_cpu[0].duration.0, tables.off_cpu[0].woken), (1_500_000, None));
    let said = gap(&tables, "the wake-ups of threads");
    assert!(said.is_some_and(|gap| gap.remedy.contains("sched:sched_wakeup")), "{:#?}", tables.manifest.unavailable);
    // Who is displaced is not woken.
    let displaced = imported(&without.replace("app:101 [120] S ==>", "app:101 [120] R ==>"));
    assert_eq!((displaced.off_cpu[0].runnable.0, gap(&displaced, "the wake-ups of threads")), (1_500_000, None));
}

#[test]
fn damage_is_named_with_its_place_and_what_was_read_is_kept() {
    let cut = TRACE.find("app   100/100   [000]    10.002000").unwrap();
    for (damage, expected) in [
        ("app   100/100   [000]    10.0020: \n", "expected an event of perf script"),
        ("\tnot-an-address x (y)\n", "expected a frame of a call stack"),
        ("app 100/100 [000] 10.1: PERF_RECORD_FORK(1:x):(2:2)\n", "expected the fields that perf script prints"),
        ("app 100/100 [000] 10.1: sched:sched_switch: nothing\nx\n", "expected the fields of this kernel event"),
        ("\u{0}\u{1}\u{2}\n", "expected an event of perf script"),
    ] {
        let (tables, problem) = import_bytes("perf", format!("{}{damage}", &TRACE[..cut]).as_bytes());
        let problem = problem.unwrap();
        assert!(problem.starts_with("trace, line ") && problem.contains(expected), "{problem}");
        assert_eq!((tables.cpu_samples.len(), tables.faults.len()), (2, 1), "{problem}");
    }
}
