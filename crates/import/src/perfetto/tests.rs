use super::messages::*;
use crate::foreign::import_bytes;
use crate::input::Input;
use crate::registry::detected;
use crate::trace::Trace;
use prost::Message;
use slowpath_recording::Tables;
use slowpath_tables::OffCpuReason;
use std::io::Cursor;

pub(crate) fn trace(packets: Vec<TracePacket>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in packets {
        bytes.push(0x0a);
        packet.encode_length_delimited(&mut bytes).unwrap();
    }
    bytes
}

fn event(ts: u64, pid: u32) -> FtraceEvent {
    FtraceEvent { timestamp: Some(ts), pid: Some(pid), ..FtraceEvent::default() }
}

fn switch(ts: u64, prev: i32, state: i64, next: i32) -> FtraceEvent {
    let sched_switch = SchedSwitch {
        prev_pid: Some(prev),
        prev_state: Some(state),
        next_pid: Some(next),
        next_comm: Some(format!("task{next}").into_bytes()),
    };
    FtraceEvent { sched_switch: Some(sched_switch), ..event(ts, prev.unsigned_abs()) }
}

fn bundle(cpu: u32, event: Vec<FtraceEvent>) -> TracePacket {
    let bundle = FtraceEventBundle { cpu: Some(cpu), event, ..FtraceEventBundle::default() };
    TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() }
}

pub(crate) fn sample() -> Vec<TracePacket> {
    let info = SystemInfo {
        utsname: Some(Utsname { release: Some("6.1".to_owned()), machine: Some("aarch64".to_owned()) }),
        page_size: Some(4096),
        num_cpus: Some(2),
        ..SystemInfo::default()
    };
    let process = Process { pid: Some(100), cmdline: vec![b"/bin/app".to_vec(), b"x".to_vec()], uid: None };
    let thread = Thread { tid: Some(101), tgid: Some(100), name: None };
    let mapped = FileMap { i_ino: Some(77), index: Some(3), s_dev: Some(0xfe0_0001) };
    let page = FtraceEvent { mm_filemap_add_to_page_cache: Some(mapped), ..event(5000, 100) };
    let woken = FtraceEvent { sched_waking: Some(Woken { pid: Some(101) }), ..event(3000, 100) };
    vec![
        TracePacket { system_info: Some(info), ..TracePacket::default() },
        TracePacket {
            process_tree: Some(ProcessTree { processes: vec![process], threads: vec![thread] }),
            ..TracePacket::default()
        },
        // CPU 1 ends a wait that begins on CPU 0, whose packet comes later.
        bundle(1, vec![switch(4000, 0, 0, 101)]),
        bundle(0, vec![switch(1000, 101, 1, 100), woken, page]),
    ]
}

#[test]
fn packets_of_several_cpus_are_put_in_order() {
    let bytes = trace(sample());
    assert_eq!(detected(&bytes).map(|one| one.name), Some("perfetto"));
    let (tables, problem) = import_bytes("perfetto", &bytes);
    assert_eq!(problem, None);
    let wait = &tables.off_cpu[0];
    assert_eq!((wait.pid, wait.tid, wait.reason), (100, 101, OffCpuReason::Kernel));
    assert_eq!((wait.ts.0, wait.duration.0, wait.runnable.0, wait.waker_tid), (1000, 3000, 1000, Some(100)));
    let page = &tables.page_cache[0];
    assert_eq!((page.dev, page.ino, page.page.0, page.pid), (0xfe0_0001, 77, 3, 100));
    let host = &tables.manifest.host;
    assert_eq!((host.page_size, host.cpus, host.machine.as_str()), (4096, 2, "aarch64"));
}

#[test]
fn large_folios_are_said_to_be_missing_where_pages_are_read() {
    let lacks = |events| {
        let (tables, problem) = import_bytes("perfetto", &trace(vec![bundle(0, events)]));
        assert_eq!(problem, None);
        tables.manifest.unavailable.iter().any(|one| one.what.contains("the sizes of large folios"))
    };
    let mapped = FileMap { i_ino: Some(77), index: Some(3), s_dev: Some(1) };
    let gone = FtraceEvent { mm_filemap_delete_from_page_cache: Some(mapped.clone()), ..event(50, 7) };
    let came = FtraceEvent { mm_filemap_add_to_page_cache: Some(mapped), ..event(50, 7) };
    assert!(!lacks(vec![switch(40, 7, 1, 8)]) && lacks(vec![came]) && lacks(vec![gone]));
}

#[test]
fn pages_of_the_page_cache_are_of_4_kib_whatever_pages_the_kernel_has() {
    let mapped = FileMap { i_ino: Some(77), index: Some(3), s_dev: Some(1) };
    let added = FtraceEvent { mm_filemap_add_to_page_cache: Some(mapped), ..event(50, 7) };
    let info = SystemInfo { page_size: Some(16_384), ..SystemInfo::default() };
    let info = TracePacket { system_info: Some(info), ..TracePacket::default() };
    let (tables, problem) = import_bytes("perfetto", &trace(vec![info, bundle(0, vec![added])]));
    assert_eq!(problem, None);
    assert_eq!((tables.page_cache[0].page.0, tables.page_cache[0].pages.0), (12, 4));
}

#[test]
fn compact_columns_are_the_same_as_events() {
    let compact = CompactSched {
        switch_timestamp: vec![1000, 3000],
        switch_prev_state: vec![0, 1],
        switch_next_pid: vec![101, 0],
        intern_table: vec![b"task101".to_vec(), b"swapper".to_vec()],
        switch_next_comm_index: vec![0, 1],
        waking_timestamp: vec![6000],
        waking_pid: vec![101],
    };
    let later = CompactSched {
        switch_timestamp: vec![7000],
        switch_prev_state: vec![0],
        switch_next_pid: vec![101],
        intern_table: vec![b"task101".to_vec()],
        switch_next_comm_index: vec![0],
        ..CompactSched::default()
    };
    let packets = [compact, later].map(|compact| {
        let bundle = FtraceEventBundle { cpu: Some(0), compact_sched: Some(compact), ..FtraceEventBundle::default() };
        TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() }
    });
    let (tables, problem) = import_bytes("perfetto", &trace(packets.to_vec()));
    assert_eq!(problem, None);
    let wait = &tables.off_cpu[0];
    assert_eq!((wait.tid, wait.ts.0, wait.duration.0, wait.woken.map(|ts| ts.0)), (101, 4000, 3000, Some(6000)));
    assert_eq!(tables.execs[0].filename, "task101");
}

#[test]
fn nobody_is_known_to_run_behind_events_that_were_lost() {
    let compact = |switches: &[(u64, i64, i32)], is_behind_lost| {
        let mut compact = CompactSched { intern_table: vec![b"task".to_vec()], ..CompactSched::default() };
        let mut last = 0;
        for (ts, state, next) in switches {
            compact.switch_timestamp.push(ts - last);
            compact.switch_prev_state.push(*state);
            compact.switch_next_pid.push(*next);
            compact.switch_next_comm_index.push(0);
            last = *ts;
        }
        let lost_events = Some(is_behind_lost);
        let bundle = FtraceEventBundle { cpu: Some(0), compact_sched: Some(compact), lost_events, event: Vec::new() };
        TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() }
    };
    // 7 leaves at some time before 2000, and nobody knows who leaves then; 8 leaves at 3000.
    let packets = vec![compact(&[(1000, 1, 7)], false), compact(&[(2000, 1, 8), (3000, 1, 7), (4000, 0, 8)], true)];
    let (tables, problem) = import_bytes("perfetto", &trace(packets));
    assert_eq!(problem, None);
    let waits = tables.off_cpu.iter().map(|row| (row.tid, row.ts.0, row.duration.0));
    assert!(waits.eq([(8, 3000, 1000), (7, 4000, 0)]), "{:?}", tables.off_cpu);
    assert_eq!((tables.manifest.losses.0["ftrace.any"], tables.manifest.losses.of("off_cpu")), (1, 1));
}

#[test]
fn a_trace_that_is_cut_or_damaged_is_named_with_its_byte_and_the_rest_is_kept() {
    let bytes = trace(sample());
    let (tables, problem) = import_bytes("perfetto", &bytes[..bytes.len() - 2]);
    assert_eq!(
        problem.unwrap(),
        format!("trace, byte {}: expected as many bytes as the length of the packet says", bytes.len() - 2)
    );
    assert_eq!(tables.execs.len(), 1);
    let mut wrong = trace(sample());
    let end = wrong.len();
    wrong.extend([0x12, 1, 1]);
    let (tables, problem) = import_bytes("perfetto", &wrong);
    assert_eq!(
        problem.unwrap(),
        format!("trace, byte {}: expected a packet of a Perfetto trace (0x0a and its length)", end + 1)
    );
    assert_eq!(tables.off_cpu.len(), 1);
}

#[test]
fn a_wait_that_the_kernel_says_to_be_for_storage_has_that_reason() {
    let blocked = |ts, tid, io_wait| FtraceEvent {
        sched_blocked_reason: Some(BlockedReason { pid: Some(tid), io_wait: Some(io_wait) }),
        ..event(ts, 0)
    };
    let events = vec![
        switch(1000, 7, 2, 8),
        switch(1100, 8, 2, 0),
        blocked(2000, 7, 1),
        blocked(2100, 8, 0),
        switch(3000, 0, 0, 7),
        // It waits once more, and the trace ends before it goes on.
        switch(3100, 7, 2, 8),
    ];
    let (tables, problem) = import_bytes("perfetto", &trace(vec![bundle(0, events)]));
    assert_eq!(problem, None);
    let reasons: Vec<_> = tables.off_cpu.iter().map(|row| (row.tid, row.reason)).collect();
    let of_nothing_else = (7, OffCpuReason::Kernel);
    assert_eq!(reasons, [(7, OffCpuReason::OtherIo), (8, OffCpuReason::Kernel), of_nothing_else]);
}

#[test]
fn a_name_that_the_kernel_cut_within_a_character_is_no_damage() {
    let mut to = switch(1000, 7, 1, 8);
    to.sched_switch.as_mut().unwrap().next_comm = Some(b"na\xc3".to_vec());
    let back = switch(2000, 8, 0, 7);
    let (tables, problem) = import_bytes("perfetto", &trace(vec![bundle(0, vec![to, back])]));
    assert_eq!(problem, None);
    assert!(tables.execs.iter().any(|row| row.pid == 8 && row.filename == "na\u{fffd}"), "{:?}", tables.execs);
}

fn tree(timestamp: Option<u64>, pid: i32, word: &str, tids: &[i32]) -> TracePacket {
    let process = Process { pid: Some(pid), cmdline: vec![word.into(), b"x".to_vec()], uid: None };
    let threads = tids.iter().map(|tid| Thread { tid: Some(*tid), tgid: Some(pid), name: None }).collect();
    let process_tree = Some(ProcessTree { processes: vec![process], threads });
    TracePacket { timestamp, process_tree, ..TracePacket::default() }
}

fn made(ts: u64, parent: u32, tid: i32, clone_flags: u64) -> FtraceEvent {
    let task_newtask = NewTask { pid: Some(tid), comm: None, clone_flags: Some(clone_flags) };
    FtraceEvent { task_newtask: Some(task_newtask), ..event(ts, parent) }
}

/// Rows of processes: time, pid and start of each program that a process tree names, and of each fork also its tid.
type Lives = (Vec<(u64, u32, u64)>, Vec<(u64, u32, u64, u32)>);

fn lives(tables: &Tables) -> Lives {
    let named = tables.execs.iter().filter(|row| row.command_line.ends_with(" x"));
    let forks = tables.forks.iter().map(|row| (row.ts.0, row.pid, row.start.0, row.tid)).collect();
    (named.map(|row| (row.ts.0, row.pid, row.start.0)).collect(), forks)
}

fn imported_holding(most: usize, packets: Vec<TracePacket>) -> Tables {
    let (mut tables, bytes) = (Tables::default(), trace(packets));
    let mut reader = Cursor::new(bytes);
    let mut trace = Trace::new(&mut tables);
    super::import_holding(most, &mut Input::of_file("trace", &mut reader, &|| true), &mut trace).unwrap();
    tables
}

#[test]
fn programs_that_are_known_before_the_first_event_begin_with_it() {
    let (tables, _) = import_bytes("perfetto", &trace(sample()));
    assert_eq!(lives(&tables).0, [(1000, 100, 1000)]);
    assert_eq!(tables.off_cpu[0].start.0, 1000);
    // The trace has nothing but events that nothing is made of.
    let (tables, _) = import_bytes("perfetto", &trace(vec![tree(None, 7, "app", &[]), bundle(0, vec![event(50, 7)])]));
    assert_eq!(lives(&tables).0, [(50, 7, 50)]);
}

#[test]
fn process_trees_behind_all_events_or_before_them_have_their_own_times() {
    const THREAD: u64 = CLONE_THREAD;
    let events = [
        bundle(0, vec![switch(1000, 100, 1, 0), switch(2000, 0, 0, 100), made(5000, 100, 300, 0)]),
        bundle(1, vec![switch(5100, 0, 0, 300), made(5200, 300, 301, THREAD), switch(5300, 300, 1, 301)]),
        bundle(1, vec![switch(5400, 301, 1, 300)]),
    ];
    let trees = [tree(Some(1500), 100, "old", &[]), tree(Some(5600), 300, "new", &[301])];
    let behind: Vec<_> = events.iter().chain(&trees).cloned().collect();
    let before: Vec<_> = trees.iter().chain(&events).cloned().collect();
    for packets in [behind, before] {
        let (tables, problem) = import_bytes("perfetto", &trace(packets));
        assert_eq!(problem, None);
        let forks = vec![(5000, 300, 5000, 300), (5200, 300, 5000, 301)];
        assert_eq!(lives(&tables), (vec![(1500, 100, 1000), (5600, 300, 5000)], forks));
        let waits = tables.off_cpu.iter().map(|row| (row.ts.0, row.pid, row.start.0));
        assert!(waits.eq([(1000, 100, 1000), (5300, 300, 5000), (5400, 300, 5000)]), "{:?}", tables.off_cpu);
        assert_eq!(tables.manifest.losses.total(), 0);
    }
}

#[test]
fn processes_are_the_same_where_events_are_given_out_while_the_trace_is_read() {
    let packets = || {
        let mut packets = vec![tree(None, 100, "old", &[101])];
        for at in 1..50u64 {
            let (ts, pid) = (at * 1000, 1000 + at as i32);
            let events = vec![made(ts, 100, pid, 0), switch(ts + 100, 100, 1, pid), switch(ts + 200, pid, 1, 100)];
            packets.extend([bundle(0, events), tree(Some(ts + 300), pid, "new", &[])]);
            packets.push(tree(None, 2000 + at as i32, "without a time", &[]));
        }
        packets
    };
    let whole = imported_holding(super::HELD, packets());
    assert_eq!((whole.forks.len(), whole.off_cpu.len()), (49, 49));
    let (programs, _) = lives(&whole);
    assert_eq!(programs.len(), 1 + 2 * 49);
    assert!(programs.contains(&(1000, 100, 1000)) && programs.contains(&(7300, 1007, 7000)), "{programs:?}");
    assert!(programs.contains(&(7200, 2007, 7200)), "{programs:?}");
    for most in [8, 20] {
        let parts = imported_holding(most, packets());
        assert_eq!(lives(&parts), lives(&whole));
        assert_eq!(parts.off_cpu, whole.off_cpu);
    }
}
