mod counts;
mod names;

use super::event::field;
use crate::foreign::import_bytes;
use crate::registry::detected;
use slowpath_recording::Tables;
use slowpath_tables::{FaultKind, FrameKind, Nanos, OffCpuReason};

const ALL: u64 = field::IP
    | field::TID
    | field::TIME
    | field::ADDR
    | field::CPU
    | field::PERIOD
    | field::CALLCHAIN
    | field::IDENTIFIER;
const IN_KERNEL: u64 = -128i64 as u64;
const IN_USER: u64 = -512i64 as u64;
const SECOND: u64 = 1_000_000_000;

/// Ids of the events of [`events`].
const CLOCK: u64 = 10;
const FAULTS: u64 = 11;
const SWITCH: u64 = 12;
const WAKEUP: u64 = 13;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn counted(text: &str) -> Vec<u8> {
    [&(text.len() as u32 + 1).to_le_bytes()[..], text.as_bytes(), b"\0"].concat()
}

/// `perf_event_attr` in its first version, with `sample_id_all`.
fn attr(kind: u64, config: u64, fields: u64) -> Vec<u8> {
    words(&[kind | 64 << 32, config, 1_000_000, fields, 0, 1 << 18, 0, 0])
}

fn events() -> [(u64, Vec<u8>, &'static str); 4] {
    [
        (CLOCK, attr(1, 0, ALL), "cpu-clock/period=1000000/"),
        (FAULTS, attr(1, 5, ALL), "minor-faults:u"),
        (SWITCH, attr(2, 314, ALL | field::RAW), "sched:sched_switch"),
        (WAKEUP, attr(2, 315, ALL | field::RAW), "sched:sched_wakeup"),
    ]
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len() + 8).unwrap();
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// A record that is no sample, with what identifies one behind it.
fn other(kind: u32, misc: u16, body: &[u8], ts: u64) -> Vec<u8> {
    record(kind, misc, &[body, &words(&[100 | 100 << 32, ts, 0, CLOCK])].concat())
}

fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((text.len() / 8 + 1) * 8, 0);
    bytes
}

struct At {
    id: u64,
    tid: u64,
    ts: u64,
    cpu: u64,
}

fn sample(at: At, place: (u16, u64), chain: &[u64], raw: &[u8]) -> Vec<u8> {
    let period = if at.id == CLOCK { 1_000_000 } else { 1 };
    sample_of(period, at, place, chain, raw)
}

fn sample_of(period: u64, at: At, (misc, address): (u16, u64), chain: &[u64], raw: &[u8]) -> Vec<u8> {
    let At { id, tid, ts, cpu } = at;
    let pid = if tid == 0 { 0 } else { 100 };
    let ip = chain.get(1).copied().unwrap_or(0x40_0999);
    let mut body = words(&[id, ip, pid | tid << 32, ts, address, cpu, period, chain.len() as u64]);
    body.extend(words(chain));
    if id == SWITCH || id == WAKEUP {
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
    }
    record(9, misc, &body)
}

fn switch(state: u64, next: u32, name: &str) -> Vec<u8> {
    let mut raw = words(&[314, state]);
    raw.extend(next.to_le_bytes());
    raw.extend(name.as_bytes());
    raw.resize(36, 0);
    raw
}

fn formats() -> Vec<u8> {
    let switch = "name: sched_switch\nID: 314\nformat:\n\tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:pid_t next_pid;\toffset:16;\tsize:4;\tsigned:1;\n\tfield:char next_comm[16];\toffset:20;\tsize:16;\tsigned:0;\n";
    let wakeup = "name: sched_wakeup\nID: 315\nformat:\n\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n";
    formats_of(4096, &[switch, wakeup])
}

fn formats_of(page_size: u32, events: &[&str]) -> Vec<u8> {
    let mut bytes = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
    bytes.extend(page_size.to_le_bytes());
    for name in ["header_page\0", "header_event\0"] {
        bytes.extend(name.as_bytes());
        bytes.extend(0u64.to_le_bytes());
    }
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(b"sched\0");
    bytes.extend((events.len() as u32).to_le_bytes());
    for format in events {
        bytes.extend((format.len() as u64).to_le_bytes());
        bytes.extend(format.as_bytes());
    }
    bytes.extend([0; 16]);
    bytes
}

fn mapped() -> Vec<u8> {
    let mut body = words(&[100 | 100 << 32, 0x40_0000, 0x2000, 0x1000, 0xfe | 1 << 32, 77, 0, 5 | 2 << 32]);
    body.extend(padded("/opt/app"));
    other(10, 2, &body, 0)
}

fn forked(kind: u32, ts: u64) -> Vec<u8> {
    other(kind, 0, &words(&[100 | 100 << 32, 101 | 100 << 32, ts]), ts)
}

/// A thread that is sampled in its program and in the kernel, has a page fault, and makes a thread that waits. Samples are not in order.
fn records() -> Vec<u8> {
    let on = |id, tid, ts, cpu| At { id, tid, ts: 10 * SECOND + ts, cpu };
    let comm = [words(&[100 | 100 << 32]), padded("app")].concat();
    let in_kernel = [IN_KERNEL, 0xffff_ffff_8100_0010, IN_USER, 0x40_0020, 0x40_0100];
    let wakeup = words(&[315, 101]);
    [
        other(3, 0, &comm, 0),
        mapped(),
        sample(on(CLOCK, 100, 1_100_000, 0), (1, 0), &in_kernel, &[]),
        sample(on(CLOCK, 100, 100_000, 0), (2, 0), &[IN_USER, 0x40_0010, 0x40_0100], &[]),
        record(68, 0, &[]),
        sample(on(FAULTS, 100, 1_200_000, 0), (2, 0x7f00_0000_1000), &[IN_USER, 0x40_0020], &[]),
        forked(7, 10 * SECOND + 2_000_000),
        // Another CPU's, which perf read later.
        sample(on(SWITCH, 0, 4_500_000, 1), (1, 0), &[], &switch(0, 101, "app")),
        sample(on(SWITCH, 101, 3_000_000, 1), (1, 0), &[IN_USER, 0x40_0200], &switch(1, 0, "swapper/1")),
        sample(on(WAKEUP, 100, 4_000_000, 0), (1, 0), &[], &wakeup),
        record(68, 0, &[]),
        forked(4, 10 * SECOND + 5_000_000),
        other(2, 0, &words(&[CLOCK, 12]), 10 * SECOND + 6_000_000),
    ]
    .concat()
}

fn sections() -> [(u64, Vec<u8>); 7] {
    let mut names = [4u32.to_le_bytes(), 64u32.to_le_bytes()].concat();
    for (id, attr, name) in events() {
        names.extend(attr);
        names.extend(1u32.to_le_bytes());
        names.extend(counted(name));
        names.extend(id.to_le_bytes());
    }
    let mut built = u32::MAX.to_le_bytes().to_vec();
    built.extend((0xa0..0xa0 + 20).collect::<Vec<u8>>());
    built.extend([20, 0, 0, 0]);
    built.extend(padded("/opt/app"));
    let clock = [words(&[1 | 1 << 32]), words(&[1_700_000_000 * SECOND, 10 * SECOND])].concat();
    [
        (1, formats()),
        (2, record(67, 1 << 15, &built)),
        (4, counted("6.1.0")),
        (6, counted("x86_64")),
        (7, [4u32.to_le_bytes(), 2u32.to_le_bytes()].concat()),
        (12, names),
        (29, clock),
    ]
}

/// A file of these records.
fn file(records: &[u8]) -> Vec<u8> {
    let (events, sections) = (events(), sections());
    let events_at = 104 + 8 * events.len() as u64;
    let data_at = events_at + 80 * events.len() as u64;
    let features = sections.iter().fold(0u64, |bits, (number, _)| bits | 1u64 << *number);
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[104, 80, events_at, 80 * events.len() as u64, data_at, records.len() as u64, 0, 0]));
    bytes.extend(words(&[features, 0, 0, 0]));
    for (id, ..) in &events {
        bytes.extend(id.to_le_bytes());
    }
    for (at, (_, attr, _)) in events.iter().enumerate() {
        bytes.extend(attr);
        bytes.extend(words(&[104 + 8 * at as u64, 8]));
    }
    bytes.extend(records);
    let mut at = bytes.len() as u64 + 16 * sections.len() as u64;
    for (_, section) in &sections {
        bytes.extend(words(&[at, section.len() as u64]));
        at += section.len() as u64;
    }
    sections.iter().for_each(|(_, section)| bytes.extend(section));
    bytes
}

/// The same as perf writes it into a pipe.
fn pipe(records: &[u8]) -> Vec<u8> {
    let mut bytes = [b"PERFILE2".to_vec(), words(&[16])].concat();
    for (id, attr, _) in events() {
        bytes.extend(record(64, 0, &[attr, words(&[id])].concat()));
    }
    for (number, section) in sections() {
        if number == 1 {
            bytes.extend(record(66, 0, &(section.len() as u32).to_le_bytes()));
            bytes.extend(section);
        } else {
            bytes.extend(record(80, 0, &[words(&[number]), section].concat()));
        }
    }
    bytes.extend(records);
    bytes
}

pub(crate) fn recorded() -> Vec<u8> {
    file(&records())
}

/// What differs between the forms of a file: nothing.
fn rows(tables: &Tables) -> String {
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        tables.cpu_samples, tables.faults, tables.off_cpu, tables.frames, tables.files, tables.manifest
    )
}

#[test]
fn samples_faults_and_waits_have_their_stacks_files_and_order() {
    let bytes = recorded();
    assert_eq!(detected(&bytes).map(|one| one.name), Some("perf-data"));
    let (tables, problem) = import_bytes("perf-data", &bytes);
    assert_eq!(problem, None);
    let samples: Vec<_> = tables.cpu_samples.iter().map(|row| (row.ts.0 - 10 * SECOND, row.tid, row.kernel)).collect();
    assert_eq!(samples, [(100_000, 100, false), (1_100_000, 100, true)]);
    assert_eq!(tables.manifest.cpu_sample_hz(), Some(1000));
    let frames: Vec<_> = tables.frames.iter().map(|row| (row.kind, row.offset.map(|offset| offset.0))).collect();
    let file = |offset| (FrameKind::File, Some(offset));
    let kernel = (FrameKind::Kernel, None);
    assert_eq!(frames, [file(0x1100), file(0x1010), file(0x1020), kernel, file(0x1200), kernel]);
    assert!(tables.symbols.iter().all(|row| row.function.is_none() && row.reason.is_some()), "{:?}", tables.symbols);
    let app = &tables.files[0];
    let built = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3";
    assert_eq!((app.dev, app.ino, app.path.as_str()), (0xfe << 20 | 1, 77, "/opt/app"));
    assert_eq!(app.build_id.as_deref(), Some(built));
    let fault = &tables.faults[0];
    assert_eq!((fault.kind, fault.address, fault.ip), (FaultKind::Minor, 0x7f00_0000_1000, 0x40_0020));
    let wait = &tables.off_cpu[0];
    assert_eq!(
        (wait.tid, wait.reason, wait.duration.0, wait.runnable.0),
        (101, OffCpuReason::Kernel, 1_500_000, 500_000)
    );
    assert_eq!((wait.waker_pid, wait.waker_tid, wait.stack.is_some()), (Some(100), Some(100), true));
    assert_eq!((tables.forks.len(), tables.forks[0].thread, tables.forks[0].tid), (1, true, 101));
    assert_eq!(tables.execs.iter().map(|row| row.filename.as_str()).collect::<Vec<_>>(), ["app"]);
}

#[test]
fn what_is_lost_counts_once_however_often_it_is_said() {
    // Kind 13, a record for each event: what the kernel counted of it.
    let counted = |lost: u64| other(13, 0, &words(&[lost]), 10 * SECOND + 7_000_000);
    for (said, lost) in [(vec![], 12), (vec![5, 4], 12), (vec![12, 9], 21)] {
        let said = said.into_iter().flat_map(counted).collect::<Vec<_>>();
        let (tables, _) = import_bytes("perf-data", &file(&[records(), said].concat()));
        assert_eq!(tables.manifest.losses.0.get("perf.any"), Some(&lost));
    }
}

#[test]
fn the_manifest_says_what_perf_knew_lost_and_cannot_name() {
    let (tables, _) = import_bytes("perf-data", &recorded());
    let manifest = &tables.manifest;
    let host = &manifest.host;
    assert_eq!((host.cpus, host.kernel.as_str(), host.machine.as_str(), host.page_size), (2, "6.1.0", "x86_64", 4096));
    assert_eq!((manifest.clock.monotonic, manifest.clock.realtime), (Nanos(10 * SECOND), 1_700_000_000_000_000_000));
    let late = manifest.losses.0.get("perf_out_of_order.any");
    assert_eq!((manifest.losses.0.get("perf.any"), late, manifest.losses.of("faults")), (Some(&12), None, 12));
    let gap = |what: &str| manifest.unavailable.iter().find(|gap| gap.what.contains(what));
    assert!(gap("the names of functions").is_some_and(|gap| gap.remedy.contains("perf script")), "{manifest:#?}");
    assert!(gap("the reasons of waits").is_some() && gap("probe memory").is_some(), "{manifest:#?}");
    assert!(gap("the page size").is_none() && gap("the time of day").is_none(), "{manifest:#?}");
    assert!(gap("the wake-ups of threads").is_none() && gap("the page faults").is_none(), "{manifest:#?}");
}

#[test]
fn a_pipe_and_compressed_records_hold_the_same_as_a_file() {
    let plain = rows(&import_bytes("perf-data", &recorded()).0);
    let (piped, problem) = import_bytes("perf-data", &pipe(&records()));
    assert_eq!((rows(&piped), problem), (plain.clone(), None));
    // One stream, in pieces that end within records.
    let packed = zstd::encode_all(records().as_slice(), 1).unwrap();
    let pieces: Vec<u8> = packed
        .chunks(packed.len() / 3)
        .enumerate()
        .flat_map(|(at, piece)| match at {
            // The later form has its length before it, and may have bytes behind it.
            1 => record(83, 0, &[words(&[piece.len() as u64]), piece.to_vec(), vec![7; 3]].concat()),
            _ => record(81, 0, piece),
        })
        .collect();
    let (unpacked, problem) = import_bytes("perf-data", &file(&pieces));
    assert_eq!((rows(&unpacked), problem), (plain, None));
    let (_, problem) = import_bytes("perf-data", &file(&record(81, 0, b"no zstd at all")));
    assert!(
        problem.is_some_and(|problem| problem.ends_with("records that were compressed with zstd (perf record -z)"))
    );
}

#[test]
fn a_file_that_is_cut_anywhere_keeps_what_was_whole_and_says_where() {
    let (bytes, records) = (recorded(), records());
    let data = 104 + (8 + 80) * events().len();
    for at in 0..bytes.len() {
        let (tables, problem) = import_bytes("perf-data", &bytes[..at]);
        let problem = problem.unwrap_or_else(|| panic!("cut at {at}"));
        assert!(problem.starts_with("trace, byte ") && problem.contains(": expected "), "{problem}");
        if at >= data && at < data + records.len() {
            assert!(problem.starts_with(&format!("trace, byte {at}: ")), "cut at {at}: {problem}");
        }
        // The last record is no sample.
        let samples = if at >= data + records.len() - 50 { 2..=2 } else { 0..=2 };
        assert!(samples.contains(&tables.cpu_samples.len()), "cut at {at}: {}", tables.cpu_samples.len());
    }
}

#[test]
fn a_record_that_is_none_of_its_kind_is_named_and_those_before_it_are_kept() {
    let begin = records();
    let data = 104 + (8 + 80) * events().len();
    for (damage, expected) in [
        (record(9, 2, &words(&[CLOCK, 1])), "a record with the fields of its kind"),
        (other(3, 0, &words(&[100 | 100 << 32]), 0)[..16].to_vec(), "as many bytes as the record's size says"),
        (record(2, 0, &words(&[CLOCK])), "a record with the fields of its kind"),
        (vec![9, 0, 0, 0, 0, 0, 7, 0], "the head of a record: kind, details and size, of 8 bytes at least"),
    ] {
        let mut bytes = file(&[begin.as_slice(), &damage].concat());
        if expected.starts_with("as many") {
            bytes.truncate(data + begin.len() + damage.len());
        }
        let (tables, problem) = import_bytes("perf-data", &bytes);
        let problem = problem.unwrap_or_default();
        let place = data + begin.len() + if expected.starts_with("as many") { damage.len() } else { 0 };
        assert_eq!(problem, format!("trace, byte {place}: expected {expected}"));
        assert_eq!((tables.cpu_samples.len(), tables.faults.len()), (2, 1), "{problem}");
    }
    // perf was killed: it did not write how much there is.
    let mut bytes = file(&begin);
    bytes[48..56].fill(0);
    bytes.truncate(data + begin.len());
    let (tables, problem) = import_bytes("perf-data", &bytes);
    assert!(problem.is_some_and(|problem| problem.starts_with("trace, byte 48: expected the size of the records")));
    // Its formats are missing, so that no switch can be read.
    assert_eq!((tables.cpu_samples.len(), tables.off_cpu.len()), (2, 0));
    let other_order = [&b"2ELIFREP"[..], &bytes[8..]].concat();
    assert_eq!(detected(&other_order).map(|one| one.name), Some("perf-data"));
    assert!(import_bytes("perf-data", &other_order).1.is_some_and(|problem| problem.contains("little-endian")));
}

#[test]
fn any_byte_may_be_another_one() {
    let bytes = recorded();
    for at in 0..bytes.len() {
        for value in [0, 0x7f, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            import_bytes("perf-data", &changed);
        }
    }
}

#[test]
fn switches_without_the_schedulers_event_are_waits_too() {
    let switch =
        |tid: u64, ts: u64, misc: u16| record(14, misc, &words(&[100 | tid << 32, 10 * SECOND + ts, 0, CLOCK]));
    let mut bytes = [b"PERFILE2".to_vec(), words(&[16])].concat();
    bytes.extend(record(64, 0, &[attr(1, 0, ALL), words(&[CLOCK])].concat()));
    bytes.extend(
        [switch(100, 1000, 1 << 13), switch(100, 3000, 0), switch(100, 4000, 3 << 13), switch(100, 4500, 0)].concat(),
    );
    let (tables, problem) = import_bytes("perf-data", &bytes);
    assert_eq!(problem, None);
    let waits: Vec<_> = tables.off_cpu.iter().map(|row| (row.reason, row.duration.0, row.runnable.0)).collect();
    assert_eq!(waits, [(OffCpuReason::Kernel, 2000, 0), (OffCpuReason::Runnable, 500, 500)]);
    // That nobody stood in a run queue after the first wait is not known.
    let gap = tables.manifest.unavailable.iter().find(|gap| gap.what.contains("the wake-ups of threads"));
    assert!(gap.is_some_and(|gap| gap.remedy.contains("sched:sched_wakeup")), "{:#?}", tables.manifest.unavailable);
}

#[test]
fn copies_of_stacks_are_not_unwound_and_the_recording_says_it() {
    let fields = field::IP | field::TID | field::TIME | field::STACK_USER;
    let mut bytes = [b"PERFILE2".to_vec(), words(&[16])].concat();
    bytes.extend(record(64, 0, &attr(1, 0, fields)));
    bytes.extend(record(9, 2, &words(&[0x40_0010, 100 | 100 << 32, SECOND, 16, 1, 2, 16])));
    let (tables, problem) = import_bytes("perf-data", &bytes);
    assert_eq!((problem, tables.cpu_samples.len(), tables.frames.len()), (None, 1, 1));
    let gap = tables.manifest.unavailable.iter().find(|gap| gap.what.contains("the call stacks of programs"));
    assert!(gap.is_some_and(|gap| gap.reason.contains("dwarf")), "{:#?}", tables.manifest.unavailable);
}
