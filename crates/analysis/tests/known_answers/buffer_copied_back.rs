//! The finding on recordings with answers known by hand, and on near misses.

use proptest::prelude::*;
use slowpath_analysis::findings::buffer_copied_back::NAME;
use slowpath_analysis::findings::of_recordings;
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, CpuSample, Fault, FaultKind, MemoryCall, MemoryCallKind, Nanos, Unit};

const MS: u64 = 1_000_000;
/// Where blocks of 1 MiB are mapped, 1 GiB from each other.
const PLACE: u64 = 0x7f00_0000_0000;
const APART: u64 = 1 << 30;
const LENGTH: u64 = 1 << 20;

/// Two processes that run for 10 s; the first uses 1 s of CPU time, of which 1000 samples a second tell.
const PROGRAM: &str = r#"
== manifest
{"started": 0, "ended": 10000000000, "counters": {"cpu_sample_hz": 1000}}
== execs
ts present pid start filename       command_line run_time
0  false   7   1     /usr/bin/video "video call" 0
0  false   8   1     /usr/bin/video "video call" 0
== exits
ts          pid start tid last  run_time
10000000000 7   1     7   true  1000000000
10000000000 8   1     8   true  1000000000
== stacks
id parent frame
0  -      0
1  0      1
2  1      2
3  2      3
4  0      4
5  4      5
6  0      6
7  6      5
8  5      7
9  0      3
10 4      8
11 -      9
12 11     5
13 -      10
14 13     5
== frames
id kind   dev ino offset address
0  file   1   42  0x10   -
1  file   1   42  0x20   -
2  file   1   43  0x30   -
3  file   1   43  0x40   -
4  file   1   42  0x50   -
5  file   1   43  0x60   -
6  file   1   42  0x70   -
7  kernel -   -   -      0xffffffff81000000
8  file   1   43  0x80   -
9  truncated - -  -   -
10 file   -   -  0x90   -
== symbols
frame level function                      source_file source_line
0     0     main                          video.cpp   90
1     0     make_block                    video.cpp   40
2     0     malloc                        -           -
3     0     mmap64                        -           -
4     0     capture                       video.cpp   51
5     0     __memmove_evex_unaligned_erms -           -
6     0     deliver                       video.cpp   61
7     0     asm_exc_page_fault            -           -
8     0     __memcmp_evex_movbe           -           -
== files
dev ino path
1   42  /usr/bin/video
1   43  /usr/lib/x86_64-linux-gnu/libc.so.6
"#;

const MAIN: u32 = 0;
const ALLOCATES: u32 = 3;
/// `capture`, in itself and in memmove; `deliver` in memmove; a page fault of the copy of `capture`; main that maps by itself;
/// `capture` in memcmp; memmove for nobody knows whom, in stacks that end early.
const CAPTURE: u32 = 4;
const COPY_IN: u32 = 5;
const COPY_BACK: u32 = 7;
const FAULT: u32 = 8;
const MAPS: u32 = 9;
const COMPARES: u32 = 10;
const CUT: u32 = 12;
const LOST: u32 = 14;
const ANONYMOUS: u32 = 0x22;
const ROOM: u32 = 0x4022;

/// What a test does with a program.
type Change<'a> = &'a dyn Fn(&mut Program);

struct Program {
    tables: Tables,
    now: u64,
}

/// Address of a place in a block.
fn at(block: u64, offset: u64) -> u64 {
    PLACE + block * APART + offset
}

impl Program {
    fn new() -> Self {
        Self { tables: Tables::from_text(PROGRAM).unwrap(), now: MS }
    }

    fn call(&mut self, call: MemoryCallKind, block: u64, argument: u32, stack: u32) {
        self.now += 1000;
        self.tables.memory_calls.push(MemoryCall {
            ts: Nanos(self.now),
            duration: Nanos(100),
            pid: 7,
            start: Nanos(1),
            tid: 7,
            call,
            address: at(block, 0),
            // An image.
            length: Bytes(if block == 1 { 8 * LENGTH } else { LENGTH }),
            old_length: None,
            old_address: None,
            shrinks: false,
            argument,
            result: 0,
            stack: Some(stack),
        });
    }

    fn map(&mut self, block: u64, stack: u32) {
        self.call(MemoryCallKind::Mmap, block, ANONYMOUS, stack);
    }

    fn sample(&mut self, to: u64, from: u64, stack: u32) -> &mut CpuSample {
        self.now += 1000;
        self.tables.cpu_samples.push(CpuSample {
            ts: Nanos(self.now),
            pid: 7,
            start: Nanos(1),
            tid: 7,
            cpu: 0,
            kernel: stack == FAULT,
            stack: Some(stack),
            first_argument: Some(to),
            second_argument: Some(from),
            copies: Some(false),
        });
        self.tables.cpu_samples.last_mut().unwrap()
    }

    fn fault(&mut self, address: u64, stack: u32) {
        self.now += 1000;
        self.tables.faults.push(Fault {
            ts: Nanos(self.now),
            duration: Some(Nanos(500)),
            pid: 7,
            start: Nanos(1),
            tid: 7,
            address,
            ip: 0,
            kind: FaultKind::Minor,
            kernel: false,
            stack: Some(stack),
            recording: None,
        });
    }

    /// So many samples of a copy, over the whole of the blocks.
    fn copy(&mut self, to: u64, from: u64, stack: u32, samples: u64) {
        for number in 0..samples {
            let offset = (number * 37 % samples) * LENGTH / samples;
            self.sample(at(to, offset), at(from, offset), stack);
        }
    }

    /// Findings, with samples of other code up to the CPU time of the process.
    fn found(mut self) -> Vec<Finding> {
        let known = self.tables.cpu_samples.iter().filter(|row| row.pid == 7).count();
        (known..1000).for_each(|_| _ = self.sample(1, 2, MAIN));
        let findings = of_recordings(&[&self.tables], None);
        findings.into_iter().filter(|finding| finding.name == NAME).collect()
    }

    /// Blocks 1 (an image), 2 (a scratch block).
    fn with_image_and_scratch() -> Self {
        let mut program = Self::new();
        program.map(1, MAPS);
        program.map(2, ALLOCATES);
        program
    }
}

fn rows<'a>(finding: &'a Finding, column: &str) -> Vec<&'a slowpath_analysis::finding::Row> {
    let rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    rows.filter(|row| row.contains_key(column)).collect()
}

#[test]
fn a_block_that_data_are_copied_into_and_back_out_of_is_found_with_both_places_and_what_each_copy_costs() {
    let mut program = Program::with_image_and_scratch();
    program.copy(2, 1, COPY_IN, 60);
    program.copy(2, 1, FAULT, 30);
    program.copy(1, 2, COPY_BACK, 40);
    let found = program.found();
    assert_eq!(found.len(), 1, "{found:#?}");
    let finding = &found[0];
    assert_eq!((finding.cost.value, finding.cost.unit), (100.0, Unit::Ms));
    let (low, high) = (finding.cost.low.unwrap(), finding.cost.high.unwrap());
    assert!((81.0..83.0).contains(&low) && (120.0..123.0).contains(&high), "{low} {high}");
    let saving = finding.predicted_saving.unwrap();
    assert_eq!((saving.value, saving.high), (finding.cost.value, finding.cost.high));
    assert!((28.0..29.0).contains(&saving.low.unwrap()), "{saving:?}");
    let subject = |name: &str| finding.subject[name].as_str().unwrap();
    assert_eq!(
        (subject("function"), subject("copied_in_by"), subject("allocated_by")),
        ("deliver", "capture", "make_block")
    );
    assert_eq!(finding.subject["size_bytes"], LENGTH);
    let saved = rows(finding, "saved");
    let saved: Vec<_> = saved.iter().map(|row| (&row["saved"], &row["saved_ms"], &row["samples_in_kernel"])).collect();
    assert_eq!(
        format!("{saved:?}"),
        r#"[(String("copy in"), Number(60.0), Number(30)), (String("copy back"), Number(40.0), Number(0)), (String("both"), Number(100.0), Number(30))]"#
    );
    let sites = rows(finding, "copy");
    let lines: Vec<_> = sites.iter().filter_map(|row| row.get("source_line")?.as_u64()).collect();
    assert_eq!(lines, [51, 61], "{sites:#?}");
    assert_eq!((finding.confidence, finding.fixes.as_slice()), (Confidence::High, &["avoid_copy".to_owned()][..]));
    assert_eq!(finding.fix_inputs.way("avoid_copy"), rows(finding, "how")[0]["how"].as_str());
    assert_eq!(
        finding.title,
        "video copies into a block of 1.00 MiB (capture) and back out of it (deliver): 10.0 % of its CPU time"
    );
}

#[test]
fn copies_by_an_instruction_that_copies_count_whichever_function_it_is_in() {
    let mut program = Program::with_image_and_scratch();
    for number in 0..40 {
        let offset = number * LENGTH / 40;
        program.sample(at(2, offset), at(1, offset), CAPTURE).copies = Some(true);
        program.sample(at(1, offset), at(2, offset), COPY_BACK);
    }
    let found = program.found();
    assert_eq!((found.len(), found[0].cost.value), (1, 80.0), "{found:#?}");
}

#[test]
fn blocks_that_live_for_one_copy_each_are_found_by_who_allocates_them() {
    let transient = |into: &dyn Fn(u64) -> bool, out: &dyn Fn(u64) -> bool| {
        let mut program = Program::new();
        program.map(1, MAPS);
        for frame in 0..120 {
            let offset = frame * 7919 % LENGTH;
            program.map(2, ALLOCATES);
            if into(frame) {
                program.sample(at(2, offset), at(1, offset), COPY_IN);
            }
            if out(frame) {
                let offset = LENGTH - 1 - offset;
                program.sample(at(1, offset), at(2, offset), COPY_BACK);
            }
            program.call(MemoryCallKind::Munmap, 2, 0, ALLOCATES);
        }
        program.found()
    };
    let found = transient(&|frame| frame % 2 == 0, &|frame| frame % 3 == 0);
    assert_eq!((found.len(), found[0].cost.value), (1, 100.0), "{found:#?}");
    // Blocks for input, and others for output, from one place.
    assert!(transient(&|frame| frame % 2 == 0, &|frame| frame % 2 == 1).is_empty());
}

#[test]
fn faults_tell_which_blocks_the_copy_filled_that_are_sampled_when_they_are_read() {
    let transient = |copy_in: u32, filled_by: &dyn Fn(u64) -> u32| {
        let mut program = Program::new();
        program.map(1, MAPS);
        for frame in 0..120 {
            let offset = frame * 7919 % LENGTH;
            program.map(2, ALLOCATES);
            program.fault(at(2, 0), filled_by(frame));
            // Never both in one block: it is gone before the next sample.
            match frame % 2 {
                0 => program.sample(at(2, offset), at(1, offset), copy_in),
                _ => program.sample(at(1, offset), at(2, offset), COPY_BACK),
            };
            program.call(MemoryCallKind::Munmap, 2, 0, ALLOCATES);
        }
        program.found()
    };
    let found = transient(COPY_IN, &|_| COPY_IN);
    assert_eq!((found.len(), found[0].cost.value), (1, 120.0), "{found:#?}");
    // Those that are read were filled by somebody else.
    assert!(transient(COPY_IN, &|frame| if frame % 2 == 0 { COPY_IN } else { CAPTURE }).is_empty());
    assert!(transient(COPY_IN, &|_| CAPTURE).is_empty());
    // Stacks that end early are alike, whoever copies.
    for ends_early in [CUT, LOST] {
        assert!(transient(ends_early, &|_| ends_early).is_empty(), "stack {ends_early}");
    }
}

#[test]
fn a_copy_that_goes_backwards_keeps_its_target_and_fills_as_much_as_it_reads() {
    let mut program = Program::with_image_and_scratch();
    (1..=100).for_each(|number| _ = program.sample(at(2, LENGTH - number * LENGTH / 100), at(1, 0), COPY_IN));
    program.copy(1, 2, COPY_BACK, 100);
    assert_eq!(program.found().len(), 1);
}

#[test]
fn near_misses_are_no_finding() {
    let consumed = |program: &mut Program| program.copy(2, 1, COPY_IN, 100);
    let produced = |program: &mut Program| program.copy(1, 2, COPY_BACK, 100);
    let moved = |program: &mut Program| program.copy(2, 2, COPY_IN, 100);
    let queue = |program: &mut Program| {
        program.map(3, MAPS);
        program.copy(2, 1, COPY_IN, 100);
        program.copy(3, 2, COPY_BACK, 100);
    };
    let header = |program: &mut Program| {
        program.copy(2, 1, COPY_IN, 100);
        (0..50).for_each(|number| _ = program.sample(at(1, number * 8), at(2, number * 8), COPY_BACK));
    };
    let halves = |program: &mut Program| {
        for number in 0..100 {
            let (lower, upper) = (number * LENGTH / 200, LENGTH / 2 + number * LENGTH / 200);
            program.sample(at(2, lower), at(1, lower), COPY_IN);
            program.sample(at(1, upper), at(2, upper), COPY_BACK);
        }
    };
    let compared = |program: &mut Program| {
        program.copy(2, 1, COMPARES, 100);
        program.copy(1, 2, COMPARES, 100);
    };
    let few = |program: &mut Program| {
        program.copy(2, 1, COPY_IN, 100);
        program.copy(1, 2, COPY_BACK, 4);
    };
    let by_another = |program: &mut Program| {
        program.copy(2, 1, COPY_IN, 100);
        let mut calls = program.tables.memory_calls.clone();
        calls.iter_mut().for_each(|call| call.pid = 8);
        program.tables.memory_calls.extend(calls);
        program.copy(1, 2, COPY_BACK, 100);
        program.tables.cpu_samples[100..].iter_mut().for_each(|row| row.pid = 8);
    };
    let cheap = |program: &mut Program| {
        program.copy(2, 1, FAULT, 100);
        program.copy(1, 2, FAULT, 100);
    };
    let forgotten = |program: &mut Program| {
        program.copy(2, 1, COPY_IN, 100);
        program.copy(1, 2, COPY_BACK, 100);
        program.tables.cpu_samples.iter_mut().for_each(|row| {
            (row.first_argument, row.second_argument, row.copies) = (None, None, None);
        });
    };
    let written_header = |program: &mut Program| {
        (0..100).for_each(|number| _ = program.sample(at(2, number % 8 * 8), at(1, 0), COPY_IN));
        program.copy(1, 2, COPY_BACK, 100);
    };
    let all: [(&str, Change<'_>); 12] = [
        ("consumed", &consumed),
        ("produced", &produced),
        ("moved inside", &moved),
        ("handed on", &queue),
        ("a header is read", &header),
        ("a header is written", &written_header),
        ("one half is written, the other read", &halves),
        ("compared", &compared),
        ("few samples", &few),
        ("by another process", &by_another),
        ("only faults, which are counted elsewhere", &cheap),
        ("recorded without arguments", &forgotten),
    ];
    for (name, copies) in all {
        let mut program = Program::with_image_and_scratch();
        copies(&mut program);
        let found = program.found();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn confidence_is_lower_where_the_claim_or_the_size_is_uncertain() {
    let judged = |change: &dyn Fn(&mut Program), argument: u32, samples: u64| {
        let mut program = Program::new();
        program.map(1, MAPS);
        program.call(MemoryCallKind::Mmap, 2, argument, ALLOCATES);
        program.copy(2, 1, COPY_IN, samples);
        program.copy(1, 2, COPY_BACK, samples);
        change(&mut program);
        let found = program.found();
        assert!(found.len() < 2, "{found:#?}");
        found.first().map(|finding| (finding.confidence, finding.title.contains("possibly")))
    };
    let nothing = |_: &mut Program| {};
    assert_eq!(judged(&nothing, ANONYMOUS, 50), Some((Confidence::High, false)));
    assert_eq!(judged(&nothing, ANONYMOUS, 10), Some((Confidence::Medium, false)));
    assert_eq!(judged(&nothing, ROOM, 50), Some((Confidence::Low, true)));
    let unmapped = |program: &mut Program| _ = program.tables.memory_calls.remove(0);
    assert_eq!(judged(&unmapped, ANONYMOUS, 50), Some((Confidence::Medium, false)));
    assert_eq!(judged(&unmapped, ROOM, 50), None);
    let lose = |lost: u64| move |program: &mut Program| program.tables.manifest.losses.add("cpu_samples", lost);
    assert_eq!(judged(&lose(1), ANONYMOUS, 50), Some((Confidence::Medium, false)));
    assert_eq!(judged(&lose(100), ANONYMOUS, 50), Some((Confidence::Low, true)));
    let endless = |program: &mut Program| program.tables.manifest.ended = None;
    assert_eq!(judged(&endless, ANONYMOUS, 50).unwrap().0, Confidence::Medium);
    let held_up = |program: &mut Program| program.tables.exits[0].run_time = Some(Nanos(2_000_000_000));
    assert_eq!(judged(&held_up, ANONYMOUS, 50).unwrap().0, Confidence::Medium);
}

proptest! {
    #[test]
    fn no_sample_is_counted_twice_whatever_is_copied_where(
        copies in prop::collection::vec((0..5u64, 0..5u64, 0..LENGTH, any::<bool>()), 0..300),
        stacks in prop::collection::vec(any::<bool>(), 5),
    ) {
        let mut program = Program::new();
        for (block, own) in (0u64..).zip(&stacks) {
            program.map(block, if *own { MAPS } else { ALLOCATES });
        }
        for (to, from, offset, in_kernel) in &copies {
            program.sample(at(*to, *offset), at(*from, *offset), if *in_kernel { FAULT } else { COPY_IN });
        }
        let in_user_code = copies.iter().filter(|(to, from, _, in_kernel)| to != from && !in_kernel).count();
        let counted: f64 = program.found().iter().map(|finding| finding.cost.value).sum();
        prop_assert!(counted <= in_user_code as f64, "{} of {}", counted, in_user_code);
    }
}
