//! The finding on recordings with answers known by hand, and on near misses.

mod cut_stacks;
mod large_blocks;
mod prediction;

use crate::memory_findings::{assert_displaced_threads_are_no_cost, row};
use crate::memory_rows::{fault, memory_call};
use slowpath_analysis::findings::of_recordings;
use slowpath_analysis::findings::transient_large_allocation::NAME;
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, Fault, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE};

const FRAME: u64 = 338 * PAGE_SIZE;
const MS: u64 = 1_000_000;

/// A process with two threads that runs for 10 s, uses 1 s of CPU time, and has two stacks: one that allocates, one that copies.
const PROGRAM: &str = r#"
== manifest
{"started": 0, "ended": 10000000000, "probes": [{"name": "fault", "state": "attached"}, {"name": "memory", "state": "attached"}]}
== execs
ts present pid start filename       command_line run_time
0  false   7   1     /usr/bin/video "video call" 0
== exits
ts          pid start tid last  run_time   min_flt
10000000000 7   1     7   true  1000000000 COUNTED
== stacks
id parent frame
0  -      0
1  0      1
2  1      2
3  2      3
4  1      4
5  0      5
6  5      2
7  6      3
8  0      2
9  8      3
== frames
id kind dev ino offset
0  file 1   42  0x10
1  file 1   42  0x20
2  file 1   43  0x30
3  file 1   43  0x40
4  file 1   43  0x50
5  file 1   42  0x28
== symbols
frame level function    source_file source_line
0     0     main        video.cpp   90
1     0     copy_frame  video.cpp   40
2     0     malloc      -           -
3     0     mmap64      -           -
4     0     memcpy      -           -
5     0     copy_frame  video.cpp   41
== files
dev ino path
1   42  /usr/bin/video
1   43  /usr/lib/x86_64-linux-gnu/libc.so.6
"#;

/// The stack of an allocation, and that of the copy that touches it. Another allocation at the next line has stack 7, one of
/// main itself 9.
const ALLOCATES: u32 = 3;
const COPIES: u32 = 4;

struct Program(Tables);

impl Program {
    fn new() -> Self {
        Self(Tables::from_text(&PROGRAM.replace("COUNTED", "0")).unwrap())
    }

    fn call(&mut self, call: MemoryCallKind, ts: u64, duration: u64, address: u64, length: u64, stack: Option<u32>) {
        self.0.memory_calls.push(MemoryCall {
            duration: Nanos(duration),
            tid: if call == MemoryCallKind::Munmap { 8 } else { 7 },
            argument: if call == MemoryCallKind::Mmap { 0x22 } else { 0 },
            stack,
            ..memory_call(call, ts, address, length)
        });
    }

    fn fault(&mut self, ts: u64, duration: Option<u64>, address: u64) {
        self.0.faults.push(Fault { duration: duration.map(Nanos), stack: Some(COPIES), ..fault(ts, address) });
    }

    /// mmap of 10 us, a fault of 1 us a page, munmap of 50 us after 5 ms.
    fn operation(&mut self, ts: u64, address: u64, length: u64, stack: Option<u32>) {
        self.call(MemoryCallKind::Mmap, ts, 10_000, address, length, stack);
        for page in 0..length / PAGE_SIZE {
            self.fault(ts + 20_000 + page * 2_000, Some(1_000), address + page * PAGE_SIZE);
        }
        self.call(MemoryCallKind::Munmap, ts + 5 * MS, 50_000, address, length, None);
    }

    /// A frame every 33 ms.
    fn frames(mut self, count: u64) -> Self {
        (0..count).for_each(|frame| self.operation(frame * 33 * MS, 0x7f00_0000_0000, FRAME, Some(ALLOCATES)));
        self
    }

    fn edited(mut self, edit: impl Fn(&mut Tables)) -> Self {
        edit(&mut self.0);
        self
    }

    #[track_caller]
    fn found(mut self) -> Option<Finding> {
        // The kernel counted what was recorded, unless a test says otherwise.
        let exit = self.0.exits.first_mut().unwrap();
        if exit.min_flt == 0 {
            exit.min_flt = self.0.faults.len() as u64;
        }
        let mut found = of_recordings(&[&self.0], None);
        found.retain(|finding| finding.name == NAME);
        assert!(found.len() <= 1, "{found:#?}");
        found.pop()
    }
}

#[test]
fn a_frame_that_is_mapped_touched_and_unmapped_300_times_is_found_with_its_cost() {
    let finding = Program::new().frames(300).found().unwrap();
    // 338 us in faults, 10 in mmap, 50 in munmap, 300 times.
    assert!((finding.cost.value - 0.398 * 300.0).abs() < 1e-9, "{:?}", finding.cost);
    assert_eq!((finding.cost.low, finding.cost.high), (Some(119.4), Some(119.4)));
    let saving = finding.predicted_saving.unwrap();
    assert!((saving.value - 0.398 * 299.0).abs() < 1e-9, "{saving:?}");
    assert!(saving.low.unwrap() <= saving.value && saving.value <= saving.high.unwrap());
    assert_eq!(finding.confidence, Confidence::High, "{:?}", finding.reasons);
    assert_eq!(finding.subject["function"], "copy_frame");
    assert_eq!(finding.subject["file"], "video");
    assert_eq!(finding.subject["stack"], "main;copy_frame;malloc;mmap64");
    assert_eq!(finding.subject["pid"], 7);
    assert_eq!(
        finding.title,
        "video maps 1.32 MiB anew in copy_frame, 300 times, and gives it back: 11.9 % of its CPU time"
    );
    assert_eq!(finding.fixes, ["reuse_buffer", "allocator_tunables", "replace_allocator", "populate_at_map"]);
    let settings = finding.fix_inputs.malloc.unwrap().to_string();
    assert_eq!(settings, "glibc.malloc.mmap_threshold=2097152:glibc.malloc.trim_threshold=8388608");
    let operations = row(&finding, "operations");
    assert_eq!(operations["faults"], 300 * 338);
    assert_eq!(operations["across_threads"], 300);
    assert_eq!(operations["at_the_same_time"], 1);
    assert_eq!(operations["size_bytes"], FRAME);
    assert_eq!(operations["touched_bytes"], 300 * FRAME);
    assert_eq!(operations["lifetime_p50_ms"], 4.99);
    assert_eq!(operations["median_us"], 398.0);
    assert_eq!(operations["per_second"], 30.3);
    let parts = &finding.evidence[0].rows;
    let part = |number: usize| (parts[number]["part"].as_str().unwrap(), parts[number]["total_ms"].as_f64().unwrap());
    assert_eq!(part(0), ("page faults, with the zeroing of pages", 101.4));
    assert_eq!(part(1), ("releasing (munmap, madvise)", 15.0));
    assert_eq!((part(2), part(3)), (("mapping (mmap, mremap)", 3.0), ("sum", 119.4)));
    let touching = row(&finding, "fault_ms");
    assert_eq!((touching["function"].as_str(), touching["fault_ms"].as_f64()), (Some("memcpy"), Some(101.4)));
    let asked = finding.evidence[2].rows.iter().find(|row| row["asked"] == true).unwrap();
    assert_eq!((asked["function"].as_str(), asked["source_line"].as_u64()), (Some("copy_frame"), Some(40)));
}

#[test]
fn what_only_glibc_heeds_is_not_offered_to_other_allocators() {
    let fixes = |file: &'static str| {
        let named = move |tables: &mut Tables| tables.files[1].path = file.to_owned();
        Program::new().frames(300).edited(named).found().unwrap().fixes
    };
    let every = ["reuse_buffer", "allocator_tunables", "replace_allocator", "populate_at_map"];
    assert_eq!(fixes("/usr/lib/libc.so.6"), every);
    assert_eq!(fixes("/usr/lib/libmimalloc.so.2.0"), ["reuse_buffer", "populate_at_map"]);
    assert_eq!(fixes("/usr/lib/libjemalloc.so.2"), ["reuse_buffer", "populate_at_map"]);
    assert_eq!(fixes("/lib/ld-musl-x86_64.so.1"), ["reuse_buffer", "replace_allocator", "populate_at_map"]);
}

#[test]
fn blocks_of_the_java_machine_are_kept_by_its_own_setting() {
    let of_java = |tables: &mut Tables| {
        tables.files[0].path = "/usr/lib/jvm/lib/server/libjvm.so".to_owned();
        tables.memory_calls.iter_mut().for_each(|call| call.stack = Some(9));
    };
    let mut finding = Program::new().frames(300).edited(of_java).found().unwrap();
    assert!(row(&finding, "how")["how"].as_str().unwrap().contains("-Xms as large as -Xmx"), "{finding:#?}");
    finding = Program::new().frames(300).found().unwrap();
    assert!(row(&finding, "how")["how"].as_str().unwrap().starts_with("in the source"), "{finding:#?}");
}

#[test]
fn copies_after_a_fork_are_not_counted_and_the_first_touches_are() {
    // A child is made in the middle of every operation, and all pages are written once more.
    let forked = |tables: &mut Tables| {
        for frame in 0..300 {
            let ts = frame * 33 * MS + 2 * MS;
            let fork = format!("== forks\nts parent_pid parent_start pid start tid thread\n{ts} 7 1 9 {ts} 9 false\n");
            tables.forks.append(&mut Tables::from_text(&fork).unwrap().forks);
        }
        let again = tables.faults.clone().into_iter().map(|fault| Fault { ts: fault.ts + Nanos(2 * MS), ..fault });
        tables.faults.extend(again);
        tables.exits[0].min_flt = tables.faults.len() as u64;
    };
    let finding = Program::new().frames(300).edited(forked).found().unwrap();
    assert_eq!(row(&finding, "operations")["faults"], 300 * 338);
    assert!((finding.cost.value - 0.398 * 300.0).abs() < 1e-9, "{:?}", finding.cost);
    let copied = finding.reasons.iter().filter(|reason| reason.starts_with("not counted: 101400 faults")).count();
    assert_eq!(copied, 1, "{:#?}", finding.reasons);
}

#[test]
fn time_in_which_threads_did_not_run_is_in_the_cost_only_where_waits_were_not_recorded() {
    assert_displaced_threads_are_no_cost(|edit| Program::new().frames(30).edited(edit).found().unwrap());
}

#[test]
fn a_cost_by_the_clock_is_never_more_than_all_of_the_cpu_time() {
    let hardly_ran = |tables: &mut Tables| tables.exits[0].run_time = Some(Nanos(MS));
    let finding = Program::new().frames(300).edited(hardly_ran).found().unwrap();
    assert!(finding.title.ends_with(": 100.0 % of its CPU time") && finding.subject["share"] == 1.0, "{finding:#?}");
}

#[test]
fn lifetimes_are_counted_in_doubling_steps_without_gaps() {
    let mut program = Program::new().frames(60);
    // Ten that live for 20 ms: no block lives for a time between, and that step is a row too.
    for frame in 60..70 {
        let (ts, address) = (frame * 33 * MS, 0x7f00_0000_0000);
        program.call(MemoryCallKind::Mmap, ts, 10_000, address, FRAME, Some(ALLOCATES));
        (0..338).for_each(|page| program.fault(ts + 20_000 + page * 2_000, Some(1_000), address + page * PAGE_SIZE));
        program.call(MemoryCallKind::Munmap, ts + 20 * MS, 50_000, address, FRAME, None);
    }
    let finding = program.found().unwrap();
    let rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    let lifetimes: Vec<_> = rows
        .filter(|row| row.contains_key("lifetime_from_ms"))
        .map(|row| {
            let number = |column: &str| row[column].as_f64().unwrap();
            (
                number("lifetime_from_ms"),
                number("lifetime_to_ms"),
                row["operations"].as_u64().unwrap(),
                number("operations_percent"),
            )
        })
        .collect();
    assert_eq!(lifetimes, [(4.096, 8.192, 60, 85.7), (8.192, 16.384, 0, 0.0), (16.384, 32.768, 10, 14.3)]);
}

#[test]
fn near_misses_are_no_finding() {
    // The allocator keeps the block: faults, but no calls.
    let kept = Program::new().frames(300).edited(|tables| tables.memory_calls.clear());
    assert_eq!(kept.found(), None);
    // One large block at start, of as many pages.
    let mut once = Program::new();
    once.operation(0, 0x7f00_0000_0000, 300 * FRAME, Some(ALLOCATES));
    assert_eq!(once.found(), None);
    // As many, all of them at the same time.
    let mut collection = Program::new();
    (0..300).for_each(|frame| {
        collection.operation(frame * 1_000, 0x7f00_0000_0000 + frame * FRAME, FRAME, Some(ALLOCATES))
    });
    assert_eq!(collection.found(), None);
    // Small ones: 31 pages and 32.
    let small = |pages: u64| {
        let mut program = Program::new();
        (0..3000).for_each(|one| {
            program.operation(one * MS * 3, 0x7f00_0000_0000 + one % 2 * FRAME, pages * PAGE_SIZE, Some(ALLOCATES))
        });
        program.found().is_some()
    };
    assert_eq!((small(31), small(32)), (false, true));
    // Mapped and unmapped, and never touched.
    assert_eq!(Program::new().frames(300).edited(|tables| tables.faults.clear()).found(), None);
    // Threads' stacks, mapped files, and blocks that the program leaves to its end.
    let flags = |flags: u32| {
        move |tables: &mut Tables| {
            let calls = tables.memory_calls.iter_mut();
            calls.filter(|call| call.call == MemoryCallKind::Mmap).for_each(|call| call.argument = flags);
        }
    };
    assert_eq!(Program::new().frames(300).edited(flags(0x2_0022)).found(), None);
    assert_eq!(Program::new().frames(300).edited(flags(0x2)).found(), None);
    assert!(Program::new().frames(300).edited(flags(0x22)).found().is_some());
}

#[test]
fn seven_times_are_no_pattern_and_eight_are() {
    // So few cost too little of one second of CPU time.
    let of_little = |tables: &mut Tables| tables.exits[0].run_time = Some(Nanos(100 * MS));
    assert_eq!(Program::new().frames(7).edited(of_little).found(), None);
    assert!(Program::new().frames(8).edited(of_little).found().is_some());
    assert_eq!(Program::new().frames(8).found(), None);
}

#[test]
fn the_cost_has_to_be_material_in_all_and_as_a_share() {
    // 8 times 0.398 ms are 3.2 ms; two hundred times as much CPU time is 637 ms.
    let run_time = |ms: u64| move |tables: &mut Tables| tables.exits[0].run_time = Some(Nanos(ms * MS));
    assert!(Program::new().frames(8).edited(run_time(636)).found().is_some());
    assert_eq!(Program::new().frames(8).edited(run_time(638)).found(), None);
    // Cheap faults: 8 times 0.094 ms are less than a millisecond, whatever the share.
    let cheap = |tables: &mut Tables| {
        tables.exits[0].run_time = Some(Nanos(2 * MS));
        tables.faults.iter_mut().for_each(|fault| fault.duration = Some(Nanos(100)));
    };
    assert_eq!(Program::new().frames(8).edited(cheap).found(), None);
    assert!(Program::new().frames(12).edited(cheap).found().is_some());
    // Without the kernel's counters it is a share of the recording: 119 ms of 10 s.
    let finding =
        Program::new().frames(300).edited(|tables| tables.exits.iter_mut().for_each(|exit| exit.run_time = None));
    let finding = finding.found().unwrap();
    assert_eq!(
        (finding.subject["share"].as_f64(), finding.subject["share_of"].as_str()),
        (Some(0.0119), Some("recording"))
    );
}

#[test]
fn lines_of_one_function_are_one_place_and_two_functions_are_two() {
    let other = |stack: Option<u32>| {
        move |tables: &mut Tables| {
            let mapped = tables.memory_calls.iter_mut().filter(|call| call.call == MemoryCallKind::Mmap);
            mapped.step_by(2).for_each(|call| call.stack = stack);
        }
    };
    // The same function at another line.
    let one = Program::new().frames(300).edited(other(Some(7))).found().unwrap();
    assert_eq!(row(&one, "operations")["operations"], 300);
    // From main itself.
    let mut two = Program::new().frames(300).edited(other(Some(9))).0;
    two.exits[0].min_flt = two.faults.len() as u64;
    let found = of_recordings(&[&two], None);
    let counts: Vec<u64> = found.iter().map(|one| row(one, "operations")["operations"].as_u64().unwrap()).collect();
    assert_eq!(counts, [150, 150], "{found:#?}");
}

#[test]
fn a_pipeline_keeps_as_many_blocks_as_it_has_at_a_time() {
    let mut program = Program::new();
    // Each frame lasts 5 ms and a new one comes every 2 ms: three at a time.
    (0..300).for_each(|frame| {
        program.operation(frame * 2 * MS, 0x7f00_0000_0000 + frame % 4 * FRAME, FRAME, Some(ALLOCATES))
    });
    let finding = program.found().unwrap();
    assert_eq!(row(&finding, "operations")["at_the_same_time"], 3);
    assert!((finding.predicted_saving.unwrap().value - 0.398 * 297.0).abs() < 1e-9);
}

#[test]
fn short_lived_processes_add_up_but_a_block_cannot_be_kept_for_another() {
    let in_processes = |frames_each: u64| {
        let mut program = Program::new().frames(300);
        let tables = &mut program.0;
        let process = |ts: Nanos| (ts.0 / (frames_each * 33 * MS)) as u32;
        for call in &mut tables.memory_calls {
            (call.pid, call.start) = (100 + process(call.ts), Nanos(u64::from(process(call.ts))));
        }
        for fault in &mut tables.faults {
            (fault.pid, fault.start) = (100 + process(fault.ts), Nanos(u64::from(process(fault.ts))));
        }
        for number in 0..(300 / frames_each) as u32 {
            let text = format!(
                "== forks\nts parent_pid parent_start pid start tid\n1 7 1 {pid} {number} {pid}\n\
                 == exits\nts pid start tid last run_time\n10000000000 {pid} {number} {pid} true 20000000\n",
                pid = 100 + number
            );
            tables.append(Tables::from_text(&text).unwrap());
        }
        program.found()
    };
    let finding = in_processes(10).unwrap();
    assert_eq!(row(&finding, "operations")["operations"], 300);
    assert_eq!(row(&finding, "operations")["at_the_same_time"], 1);
    assert!((finding.predicted_saving.unwrap().value - 0.398 * 270.0).abs() < 1e-9);
    assert!(!finding.subject.contains_key("pid"));
    // Of 30 processes with 20 ms each.
    assert_eq!(finding.subject["share"], 0.199);
    assert_eq!(in_processes(1), None);
}

#[test]
fn faults_without_duration_count_as_long_as_the_others_and_widen_the_interval() {
    let untimed = |every: usize| {
        move |tables: &mut Tables| tables.faults.iter_mut().step_by(every).for_each(|fault| fault.duration = None)
    };
    let finding = Program::new().frames(300).edited(untimed(200)).found().unwrap();
    assert!((finding.cost.value - 119.4).abs() < 1e-6, "{:?}", finding.cost);
    assert_eq!(finding.confidence, Confidence::High);
    let finding = Program::new().frames(300).edited(untimed(50)).found().unwrap();
    assert_eq!(finding.confidence, Confidence::Medium);
    let finding = Program::new().frames(300).edited(untimed(2)).found().unwrap();
    assert_eq!(finding.confidence, Confidence::Low);
    assert!(finding.reasons.iter().any(|reason| reason.contains("50.0 %")), "{:?}", finding.reasons);
    // Of those that are known a tenth is long: how long the others are makes most of the width.
    let spread = |tables: &mut Tables| {
        untimed(2)(tables);
        let known = tables.faults.iter_mut().filter_map(|fault| fault.duration.as_mut());
        known.step_by(10).for_each(|duration| duration.0 *= 20);
    };
    let finding = Program::new().frames(300).edited(spread).found().unwrap();
    let why = finding.reasons.iter().find(|reason| reason.contains("as wide as")).unwrap();
    assert!(why.ends_with("not all faults have a known duration"), "{why}");
}

#[test]
fn a_displaced_thread_moves_the_value_and_not_the_lower_end() {
    let displaced = |tables: &mut Tables| {
        tables.faults.iter_mut().step_by(1000).for_each(|fault| fault.duration = Some(Nanos(4 * MS)))
    };
    let finding = Program::new().frames(300).edited(displaced).found().unwrap();
    assert!(finding.cost.value > 500.0 && (finding.cost.low.unwrap() - 119.4).abs() < 1e-6, "{:?}", finding.cost);
    assert_eq!(finding.confidence, Confidence::Medium);
    let why = finding.reasons.iter().find(|reason| reason.contains("as wide as")).unwrap();
    assert!(why.ends_with("threads were displaced or waited in them"), "{why}");
    assert!(finding.predicted_saving.unwrap().low.unwrap() < 119.4);
}

#[test]
fn losses_gaps_and_unknown_callers_lower_confidence() {
    let confidence = |edit: &dyn Fn(&mut Tables)| Program::new().frames(300).edited(edit).found().unwrap().confidence;
    let high = |_: &mut Tables| ();
    assert_eq!(confidence(&high), Confidence::High);
    let lost = |table: &'static str, lost: u64| move |tables: &mut Tables| tables.manifest.losses.add(table, lost);
    assert_eq!(confidence(&lost("opens", 9999)), Confidence::High);
    assert_eq!(confidence(&lost("faults", 9)), Confidence::Medium);
    assert_eq!(confidence(&lost("writer_behind.memory_calls", 2000)), Confidence::Low);
    let counted = |counted: u64| move |tables: &mut Tables| tables.exits[0].min_flt = counted;
    assert_eq!(confidence(&counted(102_000)), Confidence::High);
    assert_eq!(confidence(&counted(110_000)), Confidence::Medium);
    assert_eq!(confidence(&counted(150_000)), Confidence::Low);
    let stack = |stack: Option<u32>| {
        move |tables: &mut Tables| tables.memory_calls.iter_mut().for_each(|call| call.stack = stack)
    };
    assert_eq!(confidence(&stack(None)), Confidence::Low);
    assert_eq!(confidence(&|tables| tables.manifest.ended = None), Confidence::Medium);
    // Huge pages: a fault for 2 MiB.
    let huge = |tables: &mut Tables| {
        tables.memory_calls.iter_mut().for_each(|call| call.length = Bytes(8 << 20));
        let mut number = 0;
        tables.faults.retain(|_| {
            number += 1;
            (number - 1) % 338 < 4
        });
        for (number, fault) in (0u64..).zip(&mut tables.faults) {
            fault.duration = Some(Nanos(100_000));
            fault.address += number % 4 * ((2 << 20) - PAGE_SIZE);
        }
    };
    assert_eq!(confidence(&huge), Confidence::Medium);
}

#[test]
fn of_several_launches_the_pattern_is_in_most_and_the_cost_has_an_interval() {
    let launch = |frames: u64| {
        let mut tables = Program::new().frames(frames).0;
        tables.exits[0].min_flt = tables.faults.len() as u64;
        tables
    };
    let (one, two, other) = (launch(300), launch(302), launch(0));
    let found = of_recordings(&[&one, &two, &other], None);
    assert_eq!(found.len(), 1);
    assert!((found[0].cost.value - 0.398 * 301.0).abs() < 1e-9);
    assert!(found[0].cost.low.unwrap() < found[0].cost.value);
    assert!(of_recordings(&[&one, &other], None).is_empty());
}
