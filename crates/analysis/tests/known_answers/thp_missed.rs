//! The finding on recordings with answers known by hand, and on near misses.

use crate::memory_findings::{assert_displaced_threads_are_no_cost, row};
use crate::memory_rows::{fault, memory_call};
use slowpath_analysis::findings::of_recordings;
use slowpath_analysis::findings::thp_missed::NAME;
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::{BlockCost, MemoryCost, Tables};
use slowpath_tables::{Bytes, Fault, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, Quantity, Unit};

const MIB: u64 = 1 << 20;
const SPAN: u64 = 2 * MIB;
/// Where memory is mapped: aligned to a span.
const AT: u64 = 0x7f00_0000_0000;
const HEAP: u64 = 0x5555_0000_0000;

/// A process that runs for 10 s and uses 1 s of CPU time. Stacks: 3 maps through glibc, 4 touches, 5 maps by itself, 8 through
/// jemalloc.
const PROGRAM: &str = r#"
== manifest
{"started": 0, "ended": 10000000000, "probes": [{"name": "fault", "state": "attached"}, {"name": "memory", "state": "attached"}],
 "host": {"kernel": "", "machine": "", "page_size": 4096, "cpus": 2, "memory_bytes": 0,
          "huge_pages": {"enabled": "MODE", "defrag": "madvise", "size": 2097152}}}
== execs
ts present pid start filename       command_line run_time
0  false   7   1     /usr/bin/table "table fill" 0
== exits
ts          pid start tid last  run_time   min_flt
10000000000 7   1     7   true  1000000000 0
== stacks
id parent frame
0  -      0
1  0      1
2  1      2
3  2      3
4  1      4
5  1      3
6  1      5
7  6      5
8  7      3
== frames
id kind dev ino offset
0  file 1   42  0x10
1  file 1   42  0x20
2  file 1   43  0x30
3  file 1   43  0x40
4  file 1   43  0x50
5  file 1   44  0x10
== symbols
frame level function   source_file source_line
0     0     main       table.c     90
1     0     make_table table.c     40
2     0     malloc     -           -
3     0     mmap       -           -
4     0     memset     -           -
5     0     je_malloc  -           -
== files
dev ino path
1   42  /usr/bin/table
1   43  /usr/lib/x86_64-linux-gnu/libc.so.6
1   44  /usr/lib/x86_64-linux-gnu/libjemalloc.so.2
"#;

const MALLOC: u32 = 3;
const TOUCHES: u32 = 4;
const OWN: u32 = 5;
const JEMALLOC: u32 = 8;

struct Program {
    tables: Tables,
    now: u64,
}

impl Program {
    fn on(mode: &str) -> Self {
        Self { tables: Tables::from_text(&PROGRAM.replace("MODE", mode)).unwrap(), now: 1000 }
    }

    fn new() -> Self {
        Self::on("madvise")
    }

    fn call(mut self, call: MemoryCallKind, address: u64, length: u64, argument: u32, stack: u32) -> Self {
        self.now += 10_000;
        self.tables.memory_calls.push(MemoryCall {
            duration: Nanos(1_000),
            shrinks: call == MemoryCallKind::Brk && argument == 1,
            argument: if call == MemoryCallKind::Brk { 0 } else { argument },
            stack: Some(stack),
            ..memory_call(call, self.now, address, length)
        });
        self
    }

    fn map(self, address: u64, length: u64, stack: u32) -> Self {
        self.call(MemoryCallKind::Mmap, address, length, 0x22, stack)
    }

    fn advise(self, address: u64, length: u64, advice: u32) -> Self {
        self.call(MemoryCallKind::Madvise, address, length, advice, OWN)
    }

    /// Touches so many pages, one of each `step`, each in 1 us.
    fn touch_each(mut self, address: u64, pages: u64, step: u64) -> Self {
        for page in 0..pages {
            self.now += 2_000;
            let row = fault(self.now, address + page * step * PAGE_SIZE);
            self.tables.faults.push(Fault { duration: Some(Nanos(1_000)), stack: Some(TOUCHES), ..row });
        }
        self
    }

    fn touch(self, address: u64, bytes: u64) -> Self {
        self.touch_each(address, bytes / PAGE_SIZE, 1)
    }

    /// What was measured: a fault lacks 500 ns, 4 KiB of a huge page cost 100 ns.
    fn calibrated(mut self, huge_pages: bool) -> Self {
        let quantity = |value: f64| Quantity::interval(value, value - 10.0, value + 10.0, Unit::Ns);
        let block = |bytes: u64, advised: bool, per_page: f64, unseen: Option<f64>| BlockCost {
            bytes: Bytes(bytes),
            displaced: false,
            after: false,
            operations: 8,
            faults: 0,
            huge_pages: advised && huge_pages,
            advised,
            per_page: quantity(per_page),
            unseen: unseen.map(quantity),
        };
        let blocks = vec![block(MIB, false, 1500.0, Some(500.0)), block(64 * MIB, true, 100.0, None)];
        self.tables.manifest.memory_cost = Some(MemoryCost { took: Nanos(1), blocks });
        self
    }

    fn all(mut self) -> Vec<Finding> {
        self.tables.exits[0].min_flt = self.tables.faults.len() as u64;
        of_recordings(&[&self.tables], None)
    }

    #[track_caller]
    fn found(self) -> Option<Finding> {
        let mut found = self.all();
        found.retain(|finding| finding.name == NAME);
        assert!(found.len() <= 1, "{found:#?}");
        found.pop()
    }
}

#[test]
fn time_in_which_threads_did_not_run_is_in_the_cost_only_where_waits_were_not_recorded() {
    assert_displaced_threads_are_no_cost(|edit| {
        let mut program = Program::new().map(AT + 4096, 64 * MIB, MALLOC).touch(AT + 4096, 64 * MIB);
        edit(&mut program.tables);
        program.found().unwrap()
    });
}

#[track_caller]
fn assert_near(found: Quantity, expected: [f64; 3]) {
    let found = [found.value, found.low.unwrap(), found.high.unwrap()];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}, expected {expected:?}");
}

#[test]
fn memory_of_malloc_that_is_filled_in_small_pages_is_found_with_its_cost() {
    // 64 MiB from the second page on, as malloc maps them: 31 whole spans.
    let finding = Program::new().map(AT + 4096, 64 * MIB, MALLOC).touch(AT + 4096, 64 * MIB).calibrated(true).found();
    let finding = finding.unwrap();
    let faults = 31.0 * 512.0;
    assert_near(finding.cost, [faults * 1.5e-3, faults * 1.49e-3, faults * 1.51e-3]);
    // 62 MiB a mapping: beside what was measured for 64.
    let saving = finding.predicted_saving.unwrap();
    assert!((saving.value - faults * 1.4e-3).abs() < 1e-6, "{saving:?}");
    assert!(saving.low.unwrap() < faults * 1.38e-3 + 1e-6 && saving.high.unwrap() <= finding.cost.high.unwrap());
    assert_eq!(finding.confidence, Confidence::High, "{:?}", finding.reasons);
    assert_eq!((&finding.subject["function"], &finding.subject["mode"]), (&"make_table".into(), &"madvise".into()));
    assert_eq!(
        finding.title,
        "table maps 62 MiB in make_table and touches them in 15872 small pages, where 31 huge ones fit: 2.4 % of its CPU time"
    );
    let spans = row(&finding, "spans");
    assert_eq!((&spans["spans"], &spans["faults"], &spans["mappings"]), (&31.into(), &15872.into(), &1.into()));
    assert_eq!((&spans["untouched_bytes"], &spans["untouched_elsewhere_bytes"]), (&0.into(), &0.into()));
    assert!(row(&finding, "cause")["cause"].as_str().unwrap().contains("nobody did"));
    assert_eq!(row(&finding, "fault_ms")["function"], "memset");
    assert_eq!(finding.fixes, ["huge_pages", "advise_huge_pages"]);
    assert_eq!(finding.fix_inputs.predicted_for[0], "huge_pages");
    let parts: Vec<f64> = finding.evidence[0].rows.iter().map(|row| row["total_ms"].as_f64().unwrap()).collect();
    assert_eq!(parts, [15.872, 7.936, 23.808]);
}

#[test]
fn memory_that_the_program_maps_itself_is_a_change_of_its_source() {
    let program = Program::new().map(AT, 32 * MIB, OWN).touch(AT, 32 * MIB);
    let finding = program.found().unwrap();
    assert_eq!(finding.fixes, ["advise_huge_pages"]);
    assert_eq!((&row(&finding, "spans")["spans"], &finding.subject["function"]), (&16.into(), &"make_table".into()));
    // Without a measurement the cost is of durations, and the saving is not known.
    assert_near(finding.cost, [8.192; 3]);
    assert_eq!((finding.predicted_saving, finding.confidence), (None, Confidence::Medium));
    let jemalloc = Program::new().map(AT, 32 * MIB, JEMALLOC).touch(AT, 32 * MIB).found().unwrap();
    assert_eq!(jemalloc.fixes, ["allocator_tunables", "advise_huge_pages"]);
    assert!(row(&jemalloc, "how")["how"].as_str().unwrap().contains("thp:always"));
    assert!(!jemalloc.see_by_hand.contains("GLIBC") && jemalloc.see_by_hand.ends_with("counts the faults"));
}

#[test]
fn without_stacks_who_mapped_is_not_known_and_the_setting_is_named_with_a_condition() {
    let mut program = Program::new().map(AT, 32 * MIB, MALLOC).touch(AT, 32 * MIB);
    program.tables.memory_calls[0].stack = None;
    let finding = program.found().unwrap();
    assert_eq!((finding.confidence, finding.fixes.join(" ")), (Confidence::Low, "huge_pages advise_huge_pages".into()));
    assert!(row(&finding, "how")["how"].as_str().unwrap().starts_with("where the memory is that of glibc's malloc"));
}

#[test]
fn the_heap_of_brk_is_one_place_with_large_blocks_and_its_steps_are_shown() {
    let mut program = Program::new().map(AT, 8 * MIB, MALLOC).touch(AT, 8 * MIB);
    for step in 0..128 {
        let end = HEAP + (step + 1) * 33 * PAGE_SIZE;
        program = program.call(MemoryCallKind::Brk, end, 33 * PAGE_SIZE, 0, MALLOC);
        program = program.touch(end - 33 * PAGE_SIZE, 33 * PAGE_SIZE);
    }
    let finding = program.found().unwrap();
    // 4224 pages of heap hold 8 spans.
    let spans = row(&finding, "spans");
    assert_eq!((&spans["spans"], &spans["mappings"], &spans["faults"]), (&12.into(), &2.into(), &(12 * 512).into()));
    assert_eq!(row(&finding, "in_spans")["in_spans"], 12);
}

#[test]
fn what_is_not_touched_is_the_price() {
    // A tenth of each span is left out, and other spans of the place are touched in one page each.
    let mut program = Program::new().map(AT, 64 * MIB, MALLOC);
    for span in 0..12 {
        program = program.touch(AT + span * SPAN, 461 * PAGE_SIZE);
    }
    let finding = program.touch_each(AT + 12 * SPAN, 20, 512).found().unwrap();
    let spans = row(&finding, "spans");
    assert_eq!((&spans["spans"], &spans["faults"]), (&12.into(), &(12 * 461).into()));
    assert_eq!(spans["untouched_bytes"], 12 * 51 * PAGE_SIZE);
    assert_eq!(spans["untouched_elsewhere_bytes"], 20 * 511 * PAGE_SIZE);
}

#[test]
fn why_there_were_none_follows_from_the_mode_and_from_what_was_asked() {
    let cause = |program: Program| {
        let finding = program.calibrated(true).found().unwrap();
        (row(&finding, "cause")["cause"].as_str().unwrap().to_owned(), finding)
    };
    let filled = |mode: &str| Program::on(mode).map(AT, 32 * MIB, MALLOC).touch(AT, 32 * MIB);
    let (words, finding) = cause(filled("never"));
    assert!(words.contains("switched off") && finding.predicted_saving.is_none(), "{finding:#?}");
    assert_eq!((finding.confidence, finding.fixes.len()), (Confidence::Medium, 2));
    assert!(finding.reasons.iter().any(|reason| reason.contains("root writes madvise")), "{:?}", finding.reasons);
    let (words, finding) = cause(filled("always"));
    assert!(words.contains("gave none") && finding.confidence == Confidence::Medium && finding.fixes.is_empty());
    let asked = Program::new().map(AT, 32 * MIB, MALLOC).advise(AT, 32 * MIB, 14).touch(AT, 32 * MIB);
    let (words, finding) = cause(asked);
    assert!(words.contains("gave none") && finding.fixes.is_empty(), "{finding:#?}");
    let mut grown = Program::on("always");
    for step in 0..64u64 {
        let end = HEAP + (step + 1) * 128 * PAGE_SIZE;
        grown = grown
            .call(MemoryCallKind::Brk, end, 128 * PAGE_SIZE, 0, MALLOC)
            .touch(end - 128 * PAGE_SIZE, 128 * PAGE_SIZE);
    }
    assert!(cause(grown).0.contains("grew later"));
}

#[test]
fn where_huge_pages_were_asked_for_in_vain_their_price_is_not_known() {
    let program = Program::new().map(AT, 32 * MIB, MALLOC).touch(AT, 32 * MIB).calibrated(false);
    let finding = program.found().unwrap();
    assert_eq!((finding.predicted_saving, finding.confidence), (None, Confidence::Medium));
    assert!(finding.reasons.iter().any(|reason| reason.contains("got none during")), "{:?}", finding.reasons);
}

#[test]
fn near_misses_are_no_finding() {
    let none = |what: &str, program: Program| assert_eq!(program.found(), None, "{what}");
    let large = || Program::new().map(AT, 64 * MIB, MALLOC);
    none("sparse", large().touch_each(AT, 32, 512));
    none("half of each", large().touch_each(AT, 8192, 2));
    none("huge already", large().advise(AT, 64 * MIB, 14).touch_each(AT, 32, 512));
    none("refused here", large().advise(AT, 64 * MIB, 15).touch(AT, 64 * MIB));
    none("refused by the process", large().call(MemoryCallKind::Prctl, 0, 0, 1, OWN).touch(AT, 64 * MIB));
    none("few", large().touch(AT, 7 * SPAN));
    none("not known how the machine gives them", {
        let mut program = large().touch(AT, 64 * MIB);
        program.tables.manifest.host.huge_pages = None;
        program
    });
    none("cheap beside the rest", {
        let mut program = large().touch(AT, 8 * SPAN);
        program.tables.exits[0].run_time = Some(Nanos(10_000_000_000));
        program
    });
    let mut small = Program::new();
    for block in 0..40 {
        small = small.map(AT + block * 2 * SPAN, SPAN - 4096, MALLOC).touch(AT + block * 2 * SPAN, SPAN - 4096);
    }
    none("mappings below the size", small);
    let shared = Program::new().call(MemoryCallKind::Mmap, AT, 64 * MIB, 0x21, OWN).touch(AT, 64 * MIB);
    none("shared", shared);
    none("a file", Program::new().call(MemoryCallKind::Mmap, AT, 64 * MIB, 2, OWN).touch(AT, 64 * MIB));
}

#[test]
fn what_does_not_stay_is_counted_elsewhere() {
    let names = |program: Program| -> Vec<String> { program.all().into_iter().map(|one| one.name).collect() };
    let mut blocks = Program::new();
    for _ in 0..10 {
        blocks =
            blocks.map(AT, 8 * MIB, MALLOC).touch(AT, 8 * MIB).call(MemoryCallKind::Munmap, AT, 8 * MIB, 0, MALLOC);
    }
    assert_eq!(names(blocks), ["transient_large_allocation"]);
    let mut pages = Program::new().map(AT, 32 * MIB, OWN);
    for _ in 0..10 {
        pages = pages.touch(AT, 32 * MIB).advise(AT, 32 * MIB, 4);
    }
    assert_eq!(names(pages), ["heap_trim_churn"]);
    // Given back at last, and not touched again: it stayed until then.
    let kept = Program::new().map(AT, 32 * MIB, OWN).touch(AT, 32 * MIB).advise(AT, 32 * MIB, 4);
    assert_eq!(names(kept), [NAME]);
}

#[test]
fn in_several_launches_it_must_be_in_most() {
    let launch = || {
        let mut program = Program::new().map(AT, 32 * MIB, MALLOC).touch(AT, 32 * MIB).calibrated(true);
        program.tables.exits[0].min_flt = program.tables.faults.len() as u64;
        program.tables
    };
    let without = || Program::new().map(AT, 32 * MIB, MALLOC).touch(AT, MIB).tables;
    let found = |launches: &[&Tables]| of_recordings(launches, None).into_iter().find(|one| one.name == NAME);
    let (one, two, three) = (launch(), launch(), without());
    let finding = found(&[&one, &three, &two]).unwrap();
    assert!((finding.cost.value - 8192.0 * 1.5e-3).abs() < 1e-6 && finding.predicted_saving.is_some());
    assert!(found(&[&one, &three, &three]).is_none());
}
