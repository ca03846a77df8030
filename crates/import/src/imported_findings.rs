//! Every finding on a trace of every importer: what a trace lacks costs nothing, and the recording says that and why it is missing.

use crate::declaration::Importer;
use crate::foreign::import_bytes;
use crate::registry::ALL;
use slowpath_analysis::finding::{Confidence, Finding};
use slowpath_analysis::findings;
use slowpath_recording::{ProbeState, Tables};
use slowpath_tables::missing::declared;
use slowpath_tables::{Fault, MemoryCallKind, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Blocks that are mapped, touched and released, in the traces that know memory calls.
const BLOCKS: u64 = 200;
const BLOCK: u64 = 1 << 20;

/// A program that maps and releases large blocks, reads a file and is refused its compiled Python.
fn strace() -> Vec<u8> {
    let mut text =
        r#"100 1.000000 execve("/usr/bin/python3", ["python3", "/app/m.py"], 0x7ffc /* 3 vars */) = 0 <0.000200>
100 1.000300 openat(AT_FDCWD, "/app/__pycache__/m.cpython-311.pyc", O_RDONLY) = -1 EACCES (Permission denied) <0.000010>
100 1.000400 openat(AT_FDCWD, "/app/m.py", O_RDONLY|O_CLOEXEC) = 3</app/m.py> <0.000010>
100 1.000500 read(3</app/m.py>, "x"..., 65536) = 65536 <0.030000>
"#
        .to_owned();
    for block in 0..BLOCKS {
        let ts = 1_100_000 + block * 5_000;
        let at = |us: u64| format!("100 {}.{:06}", (ts + us) / 1_000_000, (ts + us) % 1_000_000);
        writeln!(text, "{} mmap(NULL, {BLOCK}, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000 <0.000100>", at(0)).unwrap();
        writeln!(text, "{} munmap(0x7f0000000000, {BLOCK}) = 0 <0.001000>", at(2_000)).unwrap();
    }
    text.push_str("100 2.300000 exit_group(0) = ?\n100 2.300100 +++ exited with 0 +++\n");
    text.into_bytes()
}

/// The same blocks on Windows, with faults that have no duration, and reads from a disk.
fn xperf() -> Vec<u8> {
    let mut text = "BeginHeader
P-Start, TimeStamp, Process Name ( PID), ParentPID, SessionID, UniqueKey, UserSid, Command Line
Stack, TimeStamp, ThreadID, No., Address, Image!Function
PageFault, TimeStamp, Process Name ( PID), ThreadID, VirtualAddr, PrgrmCtr, Type, Image!Function
HardFault, TimeStamp, Process Name ( PID), ThreadID, VirtualAddr, ByteOffset, IOSize, ElapsedTime, FileObject, FileName, Hardfaulted Address Information
VirtualAlloc, TimeStamp, Process Name ( PID), BaseAddr, EndAddr, Flags
VirtualFree, TimeStamp, Process Name ( PID), BaseAddr, EndAddr, Flags
EndHeader
P-Start, 5, app.exe (1200), 800, 1, 0xffff800000000000, S-1-5, \"C:\\app.exe\"
"
    .to_owned();
    let stack = |text: &mut String, ts: u64, name: &str| {
        writeln!(text, "Stack, {ts}, 1204, 1, 0x00007ff600003000, app.exe!{name}").unwrap();
        writeln!(text, "Stack, {ts}, 1204, 2, 0x00007ff600004000, app.exe!main").unwrap();
    };
    for block in 0..BLOCKS {
        let (ts, from) = (10_000 + block * 5_000, 0x2_0000_0000u64);
        writeln!(text, "VirtualAlloc, {ts}, app.exe (1200), {from:#018x}, {:#018x}, 0x3000", from + BLOCK).unwrap();
        stack(&mut text, ts, "allocate");
        for page in 0..BLOCK / 4096 {
            let (ts, at) = (ts + 1 + page, from + page * 4096);
            writeln!(
                text,
                "PageFault, {ts}, app.exe (1200), 1204, {at:#018x}, 0x00007ff600001000, DemandZeroFault, app.exe!copy"
            )
            .unwrap();
            stack(&mut text, ts, "copy");
        }
        writeln!(text, "VirtualFree, {}, app.exe (1200), {from:#018x}, {:#018x}, 0x8000", ts + 3_000, from + BLOCK)
            .unwrap();
        stack(&mut text, ts + 3_000, "release");
        let faults =
            [(4_000, (BLOCKS - block) * 0x8000, 0x8000, 425, "app.dll"), (4_800, block * 0x4000, 0x4000, 200, "data")];
        for (us, offset, size, elapsed, file) in faults {
            let ts = ts + us;
            writeln!(
                text,
                "HardFault, {ts}, app.exe (1200), 1204, 0x7ff600100000, {offset:#x}, {size:#x}, {elapsed}, 0x1, \"C:\\{file}\", N/A"
            )
            .unwrap();
        }
    }
    text.into_bytes()
}

/// Page faults without durations, waits, and reads of a file.
fn ftrace() -> Vec<u8> {
    let mut text = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 6/6   #P:2\n".to_owned();
    for step in 0..BLOCKS {
        let us = step * 5_000;
        let mut line = |us: u64, who: &str, event: &str| {
            writeln!(text, "{who} [000] .....  {}.{:06}: {event}", 10 + us / 1_000_000, us % 1_000_000).unwrap()
        };
        let app = "            app-7       (      7)";
        line(us, app, &format!("page_fault_user: address={:#x} ip=0x2000 error_code=0x6", 0x10_0000 + step * 4096));
        line(
            us + 10,
            app,
            &format!("mm_filemap_add_to_page_cache: dev 254:1 ino 1a pfn=0x1f ofs={} order=0", step * 8192),
        );
        line(
            us + 20,
            app,
            "sched_switch: prev_comm=app prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120",
        );
        line(
            us + 4_000,
            "          <idle>-0       (-------)",
            "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=7 next_prio=120",
        );
    }
    text.into_bytes()
}

/// A thread that sleeps a second again and again with a stack, samples in page faults, and faults without durations.
fn perf() -> Vec<u8> {
    let mut text = "# nrcpus online : 2\n# os release : 6.1.0\n\
                    app   100/100   [000]    10.000001: PERF_RECORD_COMM exec: app:100/100\n\
                    app   100/100   [000]    10.000002: PERF_RECORD_MMAP2 100/100: [0x400000(0x2000) @ 0x1000 fe:01 77 0]: r-xp /opt/app\n"
        .to_owned();
    let frames = "\t          400020 work+0x20 (/opt/app)\n\t          400100 main+0x0 (/opt/app)\n\n";
    for step in 0..BLOCKS {
        let us = step * 5_000;
        let at = |us: u64| format!("{}.{:06}", 11 + us / 1_000_000, us % 1_000_000);
        writeln!(text, "app   100/100   [000]    {}:    1000000 cpu-clock:ppp: \n\tffffffff81000010 clear_page+0x10 ([kernel.kallsyms])\n{frames}", at(us)).unwrap();
        writeln!(
            text,
            "app   100/100   [000]    {}:          1 minor-faults:u:     {:x} [unknown] ([unknown])\n{frames}",
            at(us + 10),
            0x7f00_0000_1000 + step * 4096
        )
        .unwrap();
    }
    for second in 20..26 {
        writeln!(text, "app   100/100   [001]    {second}.000000: sched:sched_switch: app:100 [120] S ==> swapper/1:0 [120]\n\tffffffff81000030 __schedule+0x0 ([kernel.kallsyms])\n\tffffffff81000040 hrtimer_nanosleep+0x0 ([kernel.kallsyms])\n{frames}").unwrap();
        writeln!(
            text,
            "swapper     0/0     [001]    {}.000050: sched:sched_switch: swapper/1:0 [120] R ==> app:100 [120]",
            second + 1
        )
        .unwrap();
    }
    text.into_bytes()
}

/// Traces of an importer: the one that its own tests read, and one in which programs do what findings look for.
fn traces(importer: &Importer) -> Vec<Vec<u8>> {
    let known: [(&str, Vec<Vec<u8>>); 8] = [
        ("strace", vec![crate::strace::tests::TRACE.as_bytes().to_vec(), strace()]),
        ("xperf", vec![crate::xperf::tests::trace().into_bytes(), xperf()]),
        ("wpa-csv", vec![crate::wpa_csv::tests::SAMPLED.into(), crate::wpa_csv::tests::PRECISE.into()]),
        ("ftrace", vec![ftrace()]),
        ("perf", vec![crate::perf_script::tests::TRACE.as_bytes().to_vec(), perf()]),
        ("perf-data", vec![crate::perf_data::tests::recorded()]),
        ("perfetto", vec![crate::perfetto::tests::trace(crate::perfetto::tests::sample())]),
        ("simpleperf", vec![crate::simpleperf::tests::recorded()]),
    ];
    let found = known.into_iter().find(|(name, _)| *name == importer.name);
    found.map_or_else(|| panic!("no trace of {} to test with", importer.name), |(_, traces)| traces)
}

/// The recording without one of its tables.
fn without(tables: &Tables, left_out: &str) -> Tables {
    let mut rest = Tables { manifest: tables.manifest.clone(), ..Tables::default() };
    for (name, rows) in tables.row_counts().into_iter().filter(|(name, _)| *name != left_out) {
        let batch = tables.batch(name, 0..rows).unwrap();
        assert!(rest.append_batch(name, &batch).unwrap());
    }
    rest
}

/// Sums of the costs of the findings of each name.
fn costs(found: &[Finding]) -> BTreeMap<&str, f64> {
    let mut sums = BTreeMap::new();
    for one in found {
        *sums.entry(one.name.as_str()).or_default() += one.cost.value;
    }
    sums
}

/// That a recording says of each probe that it lacks why, and what helps, and that no format has what it cannot hold.
fn gaps_are_named(importer: &Importer, tables: &Tables) {
    let manifest = &tables.manifest;
    for probe in &manifest.probes {
        let is_there = probe.state == ProbeState::Attached;
        assert!(!is_there || importer.probes.contains(&probe.name.as_str()), "{}: {}", importer.name, probe.name);
        let what = declared::PROBE.of(&[&probe.name], "", "").what;
        let said = manifest.unavailable.iter().filter(|gap| gap.what == what);
        let said = said.filter(|gap| !gap.reason.is_empty() && !gap.remedy.is_empty()).count();
        assert_eq!(said > 0, !is_there, "{}: {} in {:#?}", importer.name, probe.name, manifest.unavailable);
    }
    for probe in importer.probes {
        assert!(manifest.probes.iter().any(|known| known.name == *probe), "{}: {probe}", importer.name);
    }
}

#[test]
fn what_a_trace_lacks_costs_nothing_in_any_finding_and_its_reason_is_named() {
    let mut found_in = BTreeSet::new();
    for importer in ALL {
        for bytes in traces(importer) {
            let (tables, problem) = import_bytes(importer.name, &bytes);
            assert_eq!(problem, None, "{}", importer.name);
            gaps_are_named(importer, &tables);
            let found = findings::of_recordings(&[&tables], None);
            for one in &found {
                let context = format!("{}: {one:#?}", importer.name);
                assert!(one.cost.value.is_finite() && one.cost.value >= 0.0, "{context}");
                // A cost without rows would be of what the trace lacks.
                assert!(one.cost.value == 0.0 || one.evidence.iter().any(|shown| !shown.rows.is_empty()), "{context}");
                // The kernel's counters are missing at least, so nothing is certain.
                assert!(one.confidence < Confidence::High && !one.reasons.is_empty(), "{context}");
                found_in.insert(importer.name);
            }
            // A trace that lacks a table, as that of another tool might: no finding appears, and none costs more.
            let whole = costs(&found);
            let held: Vec<&str> =
                tables.row_counts().into_iter().filter(|(_, rows)| *rows > 0).map(|(name, _)| name).collect();
            let mut cheaper = BTreeSet::new();
            for table in held {
                let less = findings::of_recordings(&[&without(&tables, table)], None);
                let less = costs(&less);
                for declared in &findings::ALL {
                    let of = |sums: &BTreeMap<&str, f64>| sums.get(declared.name).copied();
                    let (before, after) = (of(&whole), of(&less));
                    let is_less = after.is_none_or(|after| before.is_some_and(|before| after <= before * (1.0 + 1e-9)));
                    assert!(is_less, "{} without {table}: {} {before:?} {after:?}", importer.name, declared.name);
                    if before.is_some_and(|before| after.is_none_or(|after| after < before)) {
                        cheaper.insert(declared.name);
                    }
                }
            }
            // Each cost hangs on rows that the trace holds.
            assert_eq!(cheaper, whole.keys().copied().collect::<BTreeSet<_>>(), "{}", importer.name);
        }
    }
    assert!(!found_in.is_empty(), "no trace shows any finding: this test sees nothing");
}

#[test]
fn events_that_the_other_tool_lost_are_a_reason_to_doubt_a_finding() {
    let text = String::from_utf8(xperf()).unwrap();
    for (lost, is_doubted) in [(0, false), (7, true)] {
        let about = format!("EndHeader\nOS Version: 10.0.19041, Events Lost: {lost}, Buffers lost: 0\n");
        let (tables, problem) = import_bytes("xperf", text.replace("EndHeader\n", &about).as_bytes());
        assert_eq!(problem, None);
        let found = findings::of_recordings(&[&tables], None);
        let one = found.iter().find(|one| one.name == findings::cold_file_reads::NAME).unwrap();
        let doubts = one.reasons.iter().any(|reason| reason.contains("events were lost"));
        assert_eq!(doubts, is_doubted, "{:#?}", one.reasons);
    }
}

#[test]
fn hard_faults_without_mappings_are_waits_for_their_files_with_sizes_and_direction() {
    let (tables, _) = import_bytes("xperf", &xperf());
    let found = findings::of_recordings(&[&tables], None);
    let one = found.iter().find(|one| one.name == findings::cold_file_reads::NAME).unwrap();
    assert!((one.cost.value - BLOCKS as f64 * 0.625).abs() < 1e-6, "{one:#?}");
    let of = |path: &str, name: &str| {
        let rows = one.evidence.iter().flat_map(|shown| &shown.rows);
        let mut rows = rows.filter(|row| row.get("path").is_some_and(|file| file == path));
        rows.find_map(|row| row.get(name)?.as_f64()).unwrap_or_else(|| panic!("{path} {name} {one:#?}"))
    };
    let figures = |path| ["median_kib_mapped", "requests_backward", "blocked_ms"].map(|name| of(path, name));
    assert_eq!(figures("C:\\app.dll"), [32.0, BLOCKS as f64 - 1.0, BLOCKS as f64 * 0.425]);
    assert_eq!(figures("C:\\data"), [16.0, 0.0, BLOCKS as f64 * 0.2]);
}

#[test]
fn blocks_whose_costs_a_trace_lacks_are_a_finding_once_it_has_them() {
    let name = findings::transient_large_allocation::NAME;
    let is_found = |tables: &Tables| findings::of_recordings(&[tables], None).iter().any(|one| one.name == name);
    // Windows has no durations of faults and calls.
    let (mut windows, _) = import_bytes("xperf", &xperf());
    assert!(!is_found(&windows));
    let says = |tables: &Tables, what: &str| tables.manifest.unavailable.iter().any(|gap| gap.what.contains(what));
    assert!(says(&windows, "the durations of memory calls and of soft page faults"));
    windows.faults.iter_mut().for_each(|row| row.duration = Some(Nanos(1_000)));
    windows.memory_calls.iter_mut().for_each(|row| row.duration = Nanos(100_000));
    assert!(is_found(&windows));
    // strace knows the calls and none of the faults between them.
    let (mut calls, _) = import_bytes("strace", &strace());
    assert!(!is_found(&calls) && says(&calls, "fault"));
    let process = calls.execs[0].process();
    let maps = calls.memory_calls.iter().filter(|row| row.call == MemoryCallKind::Mmap);
    let touched = maps.flat_map(|row| {
        (0..BLOCK / 4096).map(move |page| (row.ts.0 + 200_000 + page * 1_000, row.address + page * 4096))
    });
    let template = windows.faults[0].clone();
    calls.faults = touched
        .map(|(ts, address)| Fault {
            ts: Nanos(ts),
            pid: process.pid,
            start: process.start,
            tid: process.pid,
            address,
            stack: None,
            ..template.clone()
        })
        .collect();
    assert!(is_found(&calls));
}
