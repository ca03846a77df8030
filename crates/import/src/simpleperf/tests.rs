use super::*;
use crate::foreign::import_bytes;
use crate::registry::detected;

fn file(records: &[Record]) -> Vec<u8> {
    let mut bytes = [MAGIC, &VERSION.to_le_bytes()].concat();
    for record in records {
        let body = record.encode_to_vec();
        bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend(body);
    }
    bytes.extend([0; 4]);
    bytes
}

fn sample(time: u64, tid: i32, event: u32, chain: &[(u32, i32)]) -> Record {
    let entry = |(file, symbol): &(u32, i32)| Entry {
        vaddr_in_file: Some(0x1000),
        file_id: Some(*file),
        symbol_id: Some(*symbol),
        execution_type: None,
    };
    let sample = Sample {
        time: Some(time),
        thread_id: Some(tid),
        callchain: chain.iter().map(entry).collect(),
        event_count: Some(1_000_000),
        event_type_id: Some(event),
    };
    Record { sample: Some(sample), ..Record::default() }
}

fn switch(time: u64, tid: u32, on: bool) -> Record {
    let switch = ContextSwitch { switch_on: Some(on), time: Some(time), thread_id: Some(tid) };
    Record { context_switch: Some(switch), ..Record::default() }
}

fn library(id: u32, path: &str, names: &[&str]) -> Record {
    let symbol = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    Record { file: Some(File { id: Some(id), path: Some(path.into()), symbol }), ..Record::default() }
}

fn thread(tid: u32, pid: u32, name: &str) -> Record {
    let thread = ThreadInfo { thread_id: Some(tid), process_id: Some(pid), thread_name: Some(name.into()) };
    Record { thread: Some(thread), ..Record::default() }
}

/// Two samples of a thread with the same stack, one in the kernel, and a wait; files and threads behind them, as simpleperf writes.
pub(crate) fn recorded() -> Vec<u8> {
    let events = ["cpu-clock:u", "sched:sched_switch"].map(|name| name.as_bytes().to_vec()).to_vec();
    file(&[
        Record { meta_info: Some(MetaInfo { event_type: events }), ..Record::default() },
        sample(2_000, 11, 0, &[(0, 1), (0, 0)]),
        sample(1_000, 11, 0, &[(0, 1), (0, 0)]),
        sample(3_000, 10, 0, &[(1, 0)]),
        sample(4_000, 11, 1, &[(1, 1), (0, 0)]),
        switch(4_000, 11, false),
        switch(9_000, 11, true),
        library(0, "/system/lib64/libart.so", &["main", "VerifyClass"]),
        library(1, "[kernel.kallsyms]", &["do_page_fault", "futex_wait_queue"]),
        thread(10, 10, "com.example"),
        thread(11, 10, "worker"),
        Record { lost: Some(Lost { lost_count: Some(3) }), ..Record::default() },
    ])
}

#[test]
fn samples_have_the_threads_and_functions_that_come_behind_them() {
    let bytes = recorded();
    assert_eq!(detected(&bytes).map(|importer| importer.name), Some("simpleperf"));
    let (tables, problem) = import_bytes("simpleperf", &bytes);
    assert_eq!(problem, None);
    let rows: Vec<_> = tables.cpu_samples.iter().map(|row| (row.ts.0, row.pid, row.tid, row.kernel)).collect();
    assert_eq!(rows, [(1_000, 10, 11, false), (2_000, 10, 11, false), (3_000, 10, 10, true)]);
    assert_eq!(tables.cpu_samples[0].stack, tables.cpu_samples[1].stack);
    assert!(tables.symbols.iter().any(|row| row.function.as_deref() == Some("VerifyClass")), "{:?}", tables.symbols);
    assert!(tables.files.iter().any(|row| row.path == "/system/lib64/libart.so"), "{:?}", tables.files);
    let waits: Vec<_> = tables.off_cpu.iter().map(|row| (row.tid, row.duration.0, row.reason)).collect();
    assert_eq!(waits, [(11, 5_000, OffCpuReason::Futex)]);
    assert_eq!(tables.manifest.counters.get(slowpath_recording::CPU_SAMPLE_HZ), Some(&1000));
    assert_eq!((tables.manifest.losses.0["simpleperf.any"], tables.manifest.losses.of("cpu_samples")), (3, 3));
    // What it cannot print is no reason to believe that nobody stood in a run queue.
    let gap = tables.manifest.unavailable.iter().find(|gap| gap.what.contains("the wake-ups of threads"));
    assert!(gap.is_some_and(|gap| gap.remedy.contains("sched_waking")), "{:#?}", tables.manifest.unavailable);
}

#[test]
fn samples_of_a_clock_are_the_cpu_samples_where_cycles_were_sampled_too() {
    let events = ["cpu-cycles", "cpu-clock:u"].map(|name| name.as_bytes().to_vec()).to_vec();
    let bytes = file(&[
        Record { meta_info: Some(MetaInfo { event_type: events }), ..Record::default() },
        sample(1_000, 11, 0, &[(0, 0)]),
        sample(2_000, 11, 1, &[(0, 0)]),
        sample(3_000, 11, 0, &[(0, 0)]),
    ]);
    let (tables, problem) = import_bytes("simpleperf", &bytes);
    assert_eq!((problem, tables.cpu_samples.len(), tables.cpu_samples[0].ts.0), (None, 1, 2_000));
    assert_eq!(tables.manifest.counters.get("not_imported.cycles"), Some(&2));
    assert_eq!(tables.manifest.cpu_sample_hz(), Some(1000));
    assert!(tables.manifest.unavailable.iter().any(|gap| gap.what.contains("the CPU samples of further events")));
}

#[test]
fn a_file_that_is_cut_anywhere_keeps_what_was_whole_and_says_where() {
    let bytes = recorded();
    for at in 0..bytes.len() {
        let (tables, problem) = import_bytes("simpleperf", &bytes[..at]);
        assert!(problem.is_some(), "cut at {at}");
        assert!(tables.cpu_samples.len() <= 3);
    }
    let mut wrong = bytes;
    wrong[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(import_bytes("simpleperf", &wrong).1.is_some_and(|problem| problem.contains("64 MiB")));
}
