//! The finding on recordings with answers known by hand, and on near misses.

use crate::memory_findings::{assert_displaced_threads_are_no_cost, row};
use crate::memory_rows::{fault, memory_call};
use slowpath_analysis::findings::heap_trim_churn::NAME;
use slowpath_analysis::findings::of_recordings;
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::{BlockCost, MemoryCost, Tables};
use slowpath_tables::{Bytes, Fault, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, Quantity, Unit};

const HEAP: u64 = 0x5555_0000_0000;
const ARENA: u64 = 0x7f00_0000_0000;
/// Pages of a round.
const ROUND: u64 = 400;
const MS: u64 = 1_000_000;

/// A process that runs for 10 s and uses 1 s of CPU time. Stacks: 3 frees through glibc, 4 touches, 6 frees elsewhere, 8 gives
/// back by itself, 11 frees through jemalloc, 14 has glibc trim.
const PROGRAM: &str = r#"
== manifest
{"started": 0, "ended": 10000000000, "probes": [{"name": "fault", "state": "attached"}, {"name": "memory", "state": "attached"}]}
== execs
ts present pid start filename       command_line run_time
0  false   7   1     /usr/bin/parse "parse call" 0
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
5  0      2
6  5      3
7  1      5
8  7      5
9  1      6
10 9      7
11 10     5
12 1      8
13 12     3
14 13     3
== frames
id kind dev ino offset
0  file 1   42  0x10
1  file 1   42  0x20
2  file 1   43  0x30
3  file 1   43  0x40
4  file 1   43  0x50
5  file 1   43  0x60
6  file 1   44  0x10
7  file 1   44  0x20
8  file 1   43  0x70
== symbols
frame level function      source_file source_line
0     0     main          parse.c     90
1     0     drop_document parse.c     40
2     0     cfree         -           -
3     0     brk           -           -
4     0     memcpy        -           -
5     0     madvise       -           -
6     0     free          -           -
7     0     pages_purge   -           -
8     0     malloc_trim   -           -
== files
dev ino path
1   42  /usr/bin/parse
1   43  /usr/lib/x86_64-linux-gnu/libc.so.6
1   44  /usr/lib/x86_64-linux-gnu/libjemalloc.so.2
"#;

const FREES: u32 = 3;
const TOUCHES: u32 = 4;

struct Program(Tables);

impl Program {
    fn new() -> Self {
        Self(Tables::from_text(&PROGRAM.replace("COUNTED", "0")).unwrap())
    }

    fn call(&mut self, call: MemoryCallKind, ts: u64, duration: u64, address: u64, pages: u64) -> &mut MemoryCall {
        let row = memory_call(call, ts, address, pages * PAGE_SIZE);
        self.0.memory_calls.push(MemoryCall { duration: Nanos(duration), stack: Some(FREES), ..row });
        self.0.memory_calls.last_mut().unwrap()
    }

    fn touch(&mut self, ts: u64, address: u64, pages: u64) {
        for page in 0..pages {
            let row = fault(ts + page * 2_000, address + page * PAGE_SIZE);
            self.0.faults.push(Fault { duration: Some(Nanos(1_000)), stack: Some(TOUCHES), ..row });
        }
    }

    /// The heap grows by the pages of a round in 10 us, each is touched in 1 us, and after 5 ms all go in 50 us.
    fn heap(mut self, rounds: u64) -> Self {
        for ts in (0..rounds).map(|round| round * 20 * MS) {
            self.call(MemoryCallKind::Brk, ts, 10_000, HEAP + ROUND * PAGE_SIZE, ROUND);
            self.touch(ts + 20_000, HEAP, ROUND);
            self.call(MemoryCallKind::Brk, ts + 5 * MS, 50_000, HEAP, ROUND).shrinks = true;
        }
        self
    }

    /// Pages of an arena are touched, and after 5 ms advice of this kind takes them in 50 us; each time another `step` on.
    fn arena(mut self, rounds: u64, advice: u32, stack: u32, step: u64) -> Self {
        for (round, ts) in (0..rounds).map(|round| (round, round * 20 * MS)) {
            let address = ARENA + round * step * PAGE_SIZE;
            self.touch(ts + 20_000, address, ROUND);
            let call = self.call(MemoryCallKind::Madvise, ts + 5 * MS, 50_000, address, ROUND);
            (call.argument, call.stack) = (advice, Some(stack));
        }
        self
    }

    fn edited(mut self, edit: impl Fn(&mut Tables)) -> Self {
        edit(&mut self.0);
        self
    }

    fn all(mut self) -> Vec<Finding> {
        // The kernel counted what was recorded.
        self.0.exits[0].min_flt = self.0.faults.len() as u64;
        of_recordings(&[&self.0], None)
    }

    #[track_caller]
    fn found(self) -> Option<Finding> {
        let mut found = self.all();
        found.retain(|finding| finding.name == NAME);
        assert!(found.len() <= 1, "{found:#?}");
        found.pop()
    }
}

/// What the fix of this name would do.
#[track_caller]
fn how<'a>(finding: &'a Finding, fix: &str) -> &'a str {
    let mut rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    rows.find(|row| row.get("fix").is_some_and(|name| name == fix)).unwrap()["how"].as_str().unwrap()
}

#[test]
fn time_in_which_threads_did_not_run_is_in_the_cost_only_where_waits_were_not_recorded() {
    assert_displaced_threads_are_no_cost(|edit| Program::new().heap(31).edited(edit).found().unwrap());
}

#[test]
fn the_predicted_saving_has_what_was_measured_that_durations_lack_and_the_cost_has_not() {
    let measured = |tables: &mut Tables| {
        let ns = |value, low, high| Quantity::interval(value, low, high, Unit::Ns);
        let block = BlockCost {
            bytes: Bytes(1 << 20),
            displaced: false,
            after: false,
            operations: 8,
            faults: 2048,
            huge_pages: false,
            advised: false,
            per_page: ns(1700.0, 1600.0, 1800.0),
            unseen: Some(ns(500.0, 400.0, 600.0)),
        };
        tables.manifest.memory_cost = Some(MemoryCost { took: Nanos(MS), blocks: vec![block] });
    };
    let finding = Program::new().heap(101).edited(measured).found().unwrap();
    assert!((finding.cost.value - 46.0).abs() < 1e-9);
    let saving = finding.predicted_saving.unwrap();
    let found = [saving.value, saving.low.unwrap(), saving.high.unwrap()];
    // 100 times 400 faults.
    let expected = [46.0 + 20.0, 46.0 + 16.0, 46.0 + 24.0];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
    assert!(finding.reasons[0].contains("500 ns (400 to 600)"), "{:?}", finding.reasons);
    assert!(!finding.reasons.iter().any(|reason| reason.contains("calibrated")), "{:?}", finding.reasons);
}

#[test]
fn a_heap_that_is_trimmed_and_grows_again_100_times_is_found_with_its_cost() {
    let finding = Program::new().heap(101).found().unwrap();
    // 400 us in faults, 10 in growing, 50 in shrinking, a hundred times: what was first touched or last given back is no part.
    assert!((finding.cost.value - 0.46 * 100.0).abs() < 1e-9, "{:?}", finding.cost);
    assert_eq!((finding.cost.low, finding.cost.high), (Some(46.0), Some(46.0)));
    assert_eq!(finding.predicted_saving, Some(finding.cost));
    assert_eq!(finding.confidence, Confidence::High, "{:?}", finding.reasons);
    assert_eq!(finding.subject["function"], "drop_document");
    assert_eq!(finding.subject["kind"], "brk_trim");
    assert_eq!(finding.subject["pid"], 7);
    assert_eq!(
        finding.title,
        "parse gives 1.56 MiB of its heap back in drop_document, 100 times, and faults it in again: 4.6 % of its CPU time"
    );
    let operations = row(&finding, "operations");
    assert_eq!((operations["operations"].as_u64(), operations["faults"].as_u64()), (Some(100), Some(100 * ROUND)));
    assert_eq!((operations["grows"].as_u64(), operations["size_bytes"].as_u64()), (Some(100), Some(ROUND << 12)));
    assert_eq!(operations["held_bytes"].as_u64(), Some(ROUND << 12));
    assert_eq!((operations["median_us"].as_f64(), operations["away_p50_ms"].as_f64()), (Some(460.0), Some(14.97)));
    let parts: Vec<f64> = finding.evidence[0].rows.iter().map(|row| row["total_ms"].as_f64().unwrap()).collect();
    assert_eq!(parts, [40.0, 5.0, 1.0, 46.0]);
    assert_eq!(row(&finding, "fault_ms")["function"], "memcpy");
    assert_eq!(finding.fixes, ["reuse_buffer", "allocator_tunables"]);
    // 1.56 MiB and what else the top of a heap holds, as a power of two.
    let settings = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4194304:glibc.malloc.trim_threshold=4194304 ";
    assert!(how(&finding, "allocator_tunables").starts_with(settings), "{}", how(&finding, "allocator_tunables"));
}

#[test]
fn advice_of_the_program_and_of_an_allocator_are_found_with_what_would_end_them() {
    let own = Program::new().arena(101, 4, 8, 0).found().unwrap();
    assert!((own.cost.value - 0.45 * 100.0).abs() < 1e-9, "{:?}", own.cost);
    assert_eq!(own.subject["kind"], "madvise_dontneed");
    assert_eq!(own.subject["function"], "drop_document");
    assert_eq!(own.fixes, ["reuse_buffer"]);
    assert!(how(&own, "reuse_buffer").contains("15.0 ms apart"), "{}", how(&own, "reuse_buffer"));
    let jemalloc = Program::new().arena(101, 4, 11, 0).found().unwrap();
    assert_eq!(jemalloc.fixes, ["reuse_buffer", "allocator_tunables"]);
    assert!(how(&jemalloc, "allocator_tunables").contains("dirty_decay_ms"));
    // Pages of MADV_FREE that the kernel took.
    let taken = Program::new().arena(101, 8, 8, 0).found().unwrap();
    assert_eq!(taken.subject["kind"], "madvise_free");
    // No setting ends what the program asks for.
    let asked = |tables: &mut Tables| tables.memory_calls.iter_mut().for_each(|call| call.stack = Some(14));
    let asked = Program::new().heap(101).edited(asked).found().unwrap();
    assert_eq!(asked.fixes, ["reuse_buffer"]);
    assert!(how(&asked, "reuse_buffer").contains("malloc_trim"));
}

#[test]
fn near_misses_are_no_finding() {
    // Once up, once down: most pages ever, and nothing comes back.
    let mut once = Program::new();
    once.call(MemoryCallKind::Brk, 0, 10_000, HEAP + 100 * ROUND * PAGE_SIZE, 100 * ROUND);
    once.touch(20_000, HEAP, 100 * ROUND);
    once.call(MemoryCallKind::Brk, 9_000 * MS, 50_000, HEAP, 100 * ROUND).shrinks = true;
    assert_eq!(once.found(), None);
    // A heap that only grows, and one that nobody touches again.
    let grows = |tables: &mut Tables| tables.memory_calls.retain(|call| !call.shrinks);
    assert_eq!(Program::new().heap(101).edited(grows).found(), None);
    let once = |tables: &mut Tables| tables.faults.truncate(ROUND as usize);
    assert_eq!(Program::new().heap(101).edited(once).found(), None);
    // Advice on pages that are never touched again: the next round has others.
    assert_eq!(Program::new().arena(101, 4, 8, ROUND).found(), None);
    assert!(Program::new().arena(101, 4, 8, ROUND / 2).found().is_some());
    // Pages of MADV_FREE that the kernel left.
    assert_eq!(Program::new().arena(101, 8, 8, 0).edited(once).found(), None);
    // Advice that brings pages, or says how they will be read.
    assert_eq!(Program::new().arena(101, 14, 8, 0).found(), None);
}

#[test]
fn few_and_cheap_oscillations_are_no_finding() {
    let run_time = |ms: u64| move |tables: &mut Tables| tables.exits[0].run_time = Some(Nanos(ms * MS));
    // Seven come back, then eight.
    assert_eq!(Program::new().heap(8).edited(run_time(100)).found(), None);
    assert!(Program::new().heap(9).edited(run_time(100)).found().is_some());
    // Eight times 0.46 ms are half a percent of 736 ms.
    assert!(Program::new().heap(9).edited(run_time(735)).found().is_some());
    assert_eq!(Program::new().heap(9).edited(run_time(737)).found(), None);
    // Many small ones: a hundred times two pages and two calls are 0.12 ms, much of what little time the program takes.
    let small = |tables: &mut Tables| {
        tables.exits[0].run_time = Some(Nanos(2 * MS));
        let mut number = 0;
        tables.faults.retain(|_| {
            number += 1;
            number <= ROUND || number % ROUND < 2
        });
        tables.faults.iter_mut().for_each(|fault| fault.duration = Some(Nanos(100)));
        tables.memory_calls.iter_mut().for_each(|call| call.duration = Nanos(500));
    };
    assert_eq!(Program::new().heap(101).edited(small).found(), None);
}

#[test]
fn an_allocator_is_one_place_whoever_frees_and_a_program_has_several() {
    let every_other = |stack: u32| {
        move |tables: &mut Tables| {
            let calls = tables.memory_calls.iter_mut();
            calls.filter(|call| call.shrinks || call.argument == 4).step_by(2).for_each(|call| call.stack = Some(stack))
        }
    };
    let finding = Program::new().heap(101).edited(every_other(6)).found().unwrap();
    assert_eq!(row(&finding, "operations")["operations"], 100);
    let places = finding.evidence.iter().find(|evidence| evidence.text.starts_with("The places")).unwrap();
    assert_eq!(places.rows.len(), 2);
    // Two stacks of a program that goes through no allocator are two places.
    let found = Program::new().arena(101, 4, 8, 0).edited(every_other(4)).all();
    let counts: Vec<_> = found.iter().map(|one| row(one, "operations")["operations"].clone()).collect();
    assert_eq!(counts, [50, 50], "{found:#?}");
}

#[test]
fn memory_that_is_away_for_long_and_losses_lower_confidence() {
    let slower = |tables: &mut Tables| {
        (tables.exits[0].ts, tables.manifest.ended) = (Nanos(1_000_000 * MS), Some(Nanos(1_000_000 * MS)));
        let times = tables.memory_calls.iter_mut().map(|call| &mut call.ts);
        times.chain(tables.faults.iter_mut().map(|fault| &mut fault.ts)).for_each(|ts| ts.0 *= 100);
    };
    let finding = Program::new().heap(101).edited(slower).found().unwrap();
    assert_eq!(finding.confidence, Confidence::Medium);
    assert!(finding.reasons[0].contains("away for 1.5 s"), "{:?}", finding.reasons);
    let lost = |tables: &mut Tables| tables.manifest.losses.add("memory_calls", 9);
    assert_eq!(Program::new().heap(101).edited(lost).found().unwrap().confidence, Confidence::Medium);
    let unknown = |tables: &mut Tables| tables.memory_calls.iter_mut().for_each(|call| call.stack = None);
    let finding = Program::new().heap(101).edited(unknown).found().unwrap();
    assert_eq!(finding.confidence, Confidence::Low);
    assert!(how(&finding, "allocator_tunables").starts_with("where the allocator is that of glibc"));
}

#[test]
fn of_several_launches_the_pattern_is_in_most() {
    let launch = |rounds: u64| {
        let mut tables = Program::new().heap(rounds).0;
        tables.exits[0].min_flt = tables.faults.len() as u64;
        tables
    };
    let (one, two, other) = (launch(101), launch(103), launch(0));
    let found = of_recordings(&[&one, &two, &other], None);
    assert_eq!(found.len(), 1);
    assert!((found[0].cost.value - 0.46 * 101.0).abs() < 1e-9);
    assert!(of_recordings(&[&one, &other], None).is_empty());
}
