use crate::declaration::detected;
use crate::foreign::import_bytes;
use slowpath_analysis::call_stacks::CallStacks;
use slowpath_tables::{FaultKind, FrameKind, OffCpuReason};

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
    assert_eq!(manifest.losses.of("perf"), 12);
    assert_eq!(manifest.counters.get("not_imported.kfree"), Some(&1));
    let gaps: Vec<&str> = manifest.unavailable.iter().map(|gap| gap.what.as_str()).collect();
    assert!(gaps.contains(&"probe memory") && gaps.contains(&"probe page_cache"), "{gaps:?}");
    assert!(!gaps.contains(&"probe fault") && !gaps.contains(&"probe off_cpu"), "{gaps:?}");
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
