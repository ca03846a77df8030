//! The trace, read back by the messages it was written with.

use super::messages::{CpuMode, EventType, Trace, TracePacket};
use super::{MINOR_FAULT_LIMIT, export};
use proptest::prelude::*;
use prost::Message;
use slowpath_recording::Tables;
use slowpath_tables::{Fault, FaultKind, Nanos};
use std::collections::BTreeMap;

fn packets(tables: &Tables) -> Vec<TracePacket> {
    Trace::decode(export(tables).trace.as_slice()).unwrap().packet
}

/// `(track, time, type, name)` of every event, in the order of the trace.
fn events(packets: &[TracePacket]) -> Vec<(u64, u64, EventType, String)> {
    let names: BTreeMap<u64, String> = packets
        .iter()
        .filter_map(|packet| packet.interned_data.as_ref())
        .flat_map(|data| &data.event_names)
        .map(|named| (named.iid(), named.name().to_owned()))
        .collect();
    let event = |packet: &TracePacket| {
        let event = packet.track_event.as_ref()?;
        let name = event.name_iid.map_or(String::new(), |iid| names[&iid].clone());
        Some((event.track_uuid(), packet.timestamp(), event.r#type(), name))
    };
    packets.iter().filter_map(event).collect()
}

/// Every slice that begins on a track ends on it, in time, and time never goes back.
fn check_nesting(packets: &[TracePacket]) -> Result<(), String> {
    let mut open: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut last = 0;
    for (track, time, kind, _) in events(packets) {
        if time < last {
            return Err(format!("{time} follows {last}"));
        }
        last = time;
        match kind {
            EventType::SliceBegin => open.entry(track).or_default().push(time),
            EventType::SliceEnd => {
                open.get_mut(&track).and_then(Vec::pop).ok_or(format!("an end without a beginning at {time}"))?;
            }
            _ => {}
        }
    }
    if open.values().all(Vec::is_empty) { Ok(()) } else { Err("a slice is left open".to_owned()) }
}

fn count(events: &[(u64, u64, EventType, String)], kind: EventType, name: &str) -> usize {
    events.iter().filter(|event| event.2 == kind && event.3 == name).count()
}

fn fault(ts: u64, duration: Option<u64>, kind: FaultKind) -> Fault {
    Fault {
        ts: Nanos(ts),
        duration: duration.map(Nanos),
        pid: 7,
        start: Nanos(1),
        tid: 7,
        address: 0x1000,
        ip: 0x2000,
        kind,
        kernel: false,
        stack: None,
        recording: None,
    }
}

#[test]
fn a_child_is_named_by_its_exec_and_before_that_by_its_parent() {
    let tables = Tables::from_text(
        "== execs\nts pid start filename command_line\n5 7 1 /bin/parent \"/bin/parent -x\"\n30 9 20 /bin/other other\n\
         == forks\nts parent_pid parent_start pid start tid thread\n10 7 1 8 10 8 false\n20 7 1 9 20 9 false\n\
         == reads\nts duration pid start tid\n40 1 8 10 8\n41 1 9 20 9\n42 1 6 1 6\n",
    )
    .unwrap();
    let names: BTreeMap<i32, Option<String>> = packets(&tables)
        .into_iter()
        .filter_map(|packet| packet.track_descriptor?.process)
        .map(|process| (process.pid(), process.process_name))
        .collect();
    let name = |text: &str| Some(text.to_owned());
    assert_eq!(names, BTreeMap::from([(6, None), (7, name("parent")), (8, name("parent")), (9, name("other"))]));
}

#[test]
fn a_fault_inside_a_read_nests_and_one_that_outlasts_it_ends_with_it_and_is_counted() {
    let mut tables = Tables::from_text("== reads\nts duration pid start tid\n100 50 7 1 7\n").unwrap();
    tables.faults = vec![fault(110, Some(10), FaultKind::Major), fault(140, Some(30), FaultKind::Major)];
    let export = export(&tables);
    assert_eq!(export.notes, ["1 slices outlasted the one they began in and are shown ending with it."]);
    let packets = packets(&tables);
    check_nesting(&packets).unwrap();
    let times: Vec<u64> = events(&packets).iter().filter(|e| e.2 == EventType::SliceEnd).map(|event| event.1).collect();
    assert_eq!(times, [120, 150, 150]);
}

#[test]
fn requests_in_flight_together_have_lanes_of_their_own() {
    let tables = Tables::from_text(
        "== manifest\n{\"devices\": [{\"dev\": 7340032, \"name\": \"loop0\", \"mount_point\": \"/lab\", \"fs\": \"ext4\", \
         \"read_ahead_kb\": 128, \"lab\": true}]}\n\
         == block_io\nts latency dev read bytes\n1 10 7340032 true 4096\n2 10 7340032 true 4096\n12 1 7340032 false 512\n\
         13 - 7340032 true 512\n",
    )
    .unwrap();
    let packets = packets(&tables);
    check_nesting(&packets).unwrap();
    let names: Vec<String> = packets
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref())
        .map(|track| track.name().to_owned())
        .collect();
    assert_eq!(names, ["block I/O of loop0 (7:0)", "requests", "requests"]);
    let events = events(&packets);
    assert_eq!(count(&events, EventType::SliceBegin, "read request"), 2);
    assert_eq!(count(&events, EventType::SliceBegin, "write request"), 1);
    assert_eq!(count(&events, EventType::Instant, "read request"), 1, "its end was not seen");
}

#[test]
fn the_launch_track_has_release_ready_and_losses() {
    let tables = Tables::from_text(
        "== manifest\n{\"launch\": {\"released\": 10, \"ready\": 900, \"ready_when\": \"exit\", \"outcome\": \"ready\"}, \
         \"losses\": {\"faults\": 3, \"reads\": 0}, \"clock\": {\"monotonic\": 5, \"realtime\": 1000}}\n",
    )
    .unwrap();
    let packets = packets(&tables);
    let events: Vec<_> = events(&packets).into_iter().map(|(_, time, kind, name)| (time, kind, name)).collect();
    let instant = |time, name: &str| (time, EventType::Instant, name.to_owned());
    assert_eq!(events, [instant(0, "note"), instant(10, "exec released"), instant(900, "ready")]);
    assert_eq!(export(&tables).notes, ["3 events were lost: faults."]);
    let clocks = &packets[0].clock_snapshot.as_ref().unwrap().clocks;
    assert_eq!(
        clocks.iter().map(|clock| (clock.clock_id(), clock.timestamp())).collect::<Vec<_>>(),
        [(3, 5), (1, 1000)]
    );
}

#[test]
fn a_sample_has_its_stack_from_the_outermost_function_and_only_used_stacks_are_told() {
    let tables = Tables::from_text(
        "== cpu_samples\nts pid start tid cpu kernel stack\n5 7 1 8 3 true 1\n6 7 1 8 3 false -\n\
         == stacks\nid parent frame\n0 - 0\n1 0 1\n2 0 1\n== frames\nid kind address\n0 generated 16\n1 kernel 32\n\
         == symbols\nframe level function\n1 0 inner\n1 1 outer\n",
    )
    .unwrap();
    let packets = packets(&tables);
    let data: Vec<_> = packets.iter().filter_map(|packet| packet.interned_data.as_ref()).collect();
    let name =
        |iid: u64| data.iter().flat_map(|data| &data.function_names).find(|named| named.iid() == iid).unwrap().name();
    let frame = |iid: &u64| data.iter().flat_map(|data| &data.frames).find(|frame| frame.iid() == *iid).unwrap();
    let stacks: Vec<_> = data.iter().flat_map(|data| &data.callstacks).collect();
    let names: Vec<_> = stacks[0].frame_ids.iter().map(|iid| name(frame(iid).function_name_id())).collect();
    assert_eq!((stacks.len(), names), (1, vec!["[generated 0x10]", "outer", "inner"]));
    let samples: Vec<_> = packets.iter().filter_map(|packet| Some((packet.timestamp(), packet.perf_sample?))).collect();
    let rows: Vec<_> = samples.iter().map(|(ts, s)| (*ts, s.tid(), s.cpu(), s.cpu_mode(), s.callstack_iid)).collect();
    assert_eq!(rows, [(5, 8, 3, CpuMode::Kernel, stacks[0].iid), (6, 8, 3, CpuMode::User, None)]);
    let threads = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()?.thread.as_ref());
    assert_eq!(threads.map(|thread| thread.tid()).collect::<Vec<_>>(), [8], "a thread with samples only has a track");
}

#[test]
fn waits_are_on_a_track_below_the_thread_and_do_not_shorten_its_slices() {
    let tables = Tables::from_text(
        "== off_cpu\nts duration pid start tid reason waker_pid waker_tid\n110 60 7 1 7 fault_io - -\n200 5 7 1 7 futex 9 9\n\
         == faults\nts duration pid start tid kind\n100 50 7 1 7 major\n",
    )
    .unwrap();
    assert_eq!(export(&tables).notes, [] as [String; 0]);
    let packets = packets(&tables);
    check_nesting(&packets).unwrap();
    let tracks: Vec<_> = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    let below = tracks.iter().find(|track| track.name() == "off CPU").unwrap();
    let thread = tracks.iter().find(|track| track.thread.is_some()).unwrap();
    assert_eq!(below.parent_uuid, thread.uuid);
    let names: Vec<_> = events(&packets)
        .into_iter()
        .filter(|event| event.0 == below.uuid() && event.2 == EventType::SliceBegin)
        .map(|event| event.3)
        .collect();
    assert_eq!(names, ["fault_io", "futex"]);
}

#[test]
fn of_too_many_minor_faults_the_longest_are_kept_and_that_is_said() {
    let minor = (0..=MINOR_FAULT_LIMIT as u64).map(|i| fault(i * 10, Some(5 + u64::from(i > 0)), FaultKind::Minor));
    let mut tables = Tables { faults: minor.collect(), ..Tables::default() };
    tables.faults.push(fault(5, Some(2), FaultKind::Major));
    let full = packets(&tables);
    assert_eq!(count(&events(&full), EventType::SliceBegin, "minor fault"), MINOR_FAULT_LIMIT);
    assert_eq!(count(&events(&full), EventType::SliceBegin, "major fault"), 1);
    assert_eq!(export(&tables).notes, ["1 of 200001 minor faults are left out: those of up to 5 ns (limit 200000)."]);
    tables.faults.swap_remove(0);
    assert_eq!(count(&events(&packets(&tables)), EventType::SliceBegin, "minor fault"), MINOR_FAULT_LIMIT);
}

#[test]
fn counters_end_with_the_exact_number_of_pages() {
    let mut text = "== page_cache\nts pid start tid op pages asker\n".to_owned();
    for i in 0..500 {
        text.push_str(&format!(
            "{} {} 1 7 {} 2 fault\n",
            i * 7_000,
            7 + i % 2,
            if i % 5 == 4 { "delete" } else { "add" }
        ));
    }
    let tables = Tables::from_text(&text).unwrap();
    let packets = packets(&tables);
    let mut values: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for event in packets.iter().filter_map(|packet| packet.track_event.as_ref()) {
        values.entry(event.track_uuid()).or_default().extend(event.counter_value);
    }
    let last: Vec<i64> = values.values().map(|values| *values.last().unwrap()).collect();
    assert_eq!(last.iter().max(), Some(&800), "{last:?}");
    assert_eq!(last.iter().sum::<i64>(), 1_600, "the processes' counters add up to the whole: {last:?}");
    assert!(values.values().all(|values| values.len() < 100 && values.is_sorted()));
}

proptest! {
    #[test]
    fn slices_nest_and_none_is_lost_whatever_the_times(
        faults in proptest::collection::vec((0u64..200, proptest::option::of(0u64..100)), 0..40),
    ) {
        let rows = faults.iter().map(|(ts, duration)| fault(*ts, *duration, FaultKind::Major));
        let tables = Tables { faults: rows.collect(), ..Tables::default() };
        let packets = packets(&tables);
        prop_assert_eq!(check_nesting(&packets), Ok(()));
        let events = events(&packets);
        let shown = count(&events, EventType::SliceBegin, "major fault") + count(&events, EventType::Instant, "major fault");
        prop_assert_eq!(shown, faults.len());
    }
}

#[test]
fn each_cpu_of_a_trace_has_its_tracks() {
    let tables = Tables::from_text(
        "== cpu_events\nts duration cpu kind name tid value\n10 50 1 task \"a hog\" 30 49\n20 9 1 interrupt timer - -\n22 3 1 softirq TIMER - -\n\
         25 4 1 work vmstat_update 9 -\n60 5 0 idle idle - 1\n70 - 0 frequency frequency - 1800000\n71 - 0 binder \"transaction transaction=7\" 11 -\n",
    )
    .unwrap();
    let packets = packets(&tables);
    check_nesting(&packets).unwrap();
    let events = events(&packets);
    for name in ["a hog", "timer", "TIMER", "vmstat_update", "idle"] {
        assert_eq!(count(&events, EventType::SliceBegin, name), 1, "{name}");
    }
    assert_eq!(count(&events, EventType::Instant, "transaction transaction=7"), 1);
    assert_eq!(events.iter().filter(|event| event.2 == EventType::Counter).count(), 1);
    let track = |name: &str| events.iter().find(|event| event.3 == name).map(|event| event.0);
    assert_eq!(track("timer"), track("TIMER"), "a softirq is shown in the interrupt at whose end it runs");
    assert_ne!(track("a hog"), track("timer"));
    let names: Vec<String> = packets
        .into_iter()
        .filter_map(|packet| packet.track_descriptor?.name)
        .filter(|name| name.starts_with("CPU") || name.starts_with("frequency"))
        .collect();
    assert_eq!(names, ["CPU 0", "frequency of CPU 0", "CPU 1"]);
}
