//! The Perfetto trace, read by the definitions that Perfetto publishes for Python.
//!
//! Needs a Python with the packages `perfetto` and `protobuf`: name it in `SLOWPATH_TEST_PYTHON`.

use crate::profiled;
use serde_json::{Value, json};
use slowpath_recording::Tables;
use slowpath_report::perfetto;
use slowpath_tables::{FaultKind, PageCacheOp};
use std::collections::BTreeMap;
use std::process::Command;

/// Two processes, three threads, nested and unfinished events, and a path that is not ASCII.
fn recording() -> Tables {
    let mut text = r#"
== manifest
{
  "launch": {"released": 1000, "ready": 900000, "ready_when": "the window is shown", "outcome": "ready"},
  "clock": {"monotonic": 1000, "realtime": 1700000000000000000},
  "devices": [{"dev": 7340032, "name": "loop0", "mount_point": "/lab", "fs": "ext4", "read_ahead_kb": 128, "lab": true}],
  "losses": {"faults": 2}
}
== execs
ts pid start filename command_line
1100 70 900 /usr/bin/app "/usr/bin/app --fast"
== forks
ts parent_pid parent_start pid start tid thread
2000 70 900 71 2000 71 false
2100 70 900 70 900 72 true
== files
dev ino path
7340032 5 /usr/lib/bibliothèque.so
== reads
ts duration pid start tid dev ino offset result
3000 5000 70 900 72 7340032 5 0 4096
9000 100 71 2000 71 7340032 6 0 -11
== readaheads
ts pid start tid dev ino page pages kind
3100 70 900 72 7340032 5 0 32 sync
== block_io
ts latency dev sector bytes read pid in_tree
3200 4000 7340032 8 131072 true 70 true
3300 4100 7340032 264 131072 true 70 true
3400 - 7340032 520 131072 true 0 false
"#
    .to_owned();
    text.push_str("== page_cache\nts pid start tid op dev ino page pages asker\n");
    for page in 0..32 {
        text.push_str(&format!("{} 70 900 72 add 7340032 5 {page} 1 read\n", 3_150 + page));
    }
    text.push_str("9010 71 2000 71 add 7340032 6 0 4 fault\n9020 71 2000 71 delete 7340032 6 0 4 other\n");
    text.push_str("== faults\nts duration pid start tid address ip kind kernel\n");
    for i in 0..100 {
        let (pid, start, kind) = if i % 3 == 0 { (71, 2000, "major") } else { (70, 900, "minor") };
        let duration = if i % 10 == 9 { "-" } else { "300" };
        text.push_str(&format!("{} {duration} {pid} {start} {pid} {} 4096 {kind} false\n", 20_000 + i * 500, i * 4096));
    }
    // Inside the read of thread 72, on behalf of the kernel.
    text.push_str("4000 200 70 900 72 8192 4096 minor true\n");
    let mut tables = Tables::from_text(&text).unwrap();
    tables.sort();
    tables
}

/// What the trace must hold, counted from the tables by a way of its own.
fn expected(tables: &Tables) -> Value {
    let mut processes: BTreeMap<u32, BTreeMap<&str, u64>> = BTreeMap::new();
    let mut add = |pid, name, n| *processes.entry(pid).or_default().entry(name).or_default() += n;
    for fault in &tables.faults {
        add(fault.pid, if fault.kind == FaultKind::Minor { "minor fault" } else { "major fault" }, 1);
    }
    tables.reads.iter().for_each(|read| add(read.pid, "read", 1));
    tables.readaheads.iter().for_each(|readahead| add(readahead.pid, "readahead", 1));
    tables.execs.iter().for_each(|exec| add(exec.pid, "exec", 1));
    for row in tables.page_cache.iter().filter(|row| row.op == PageCacheOp::Add) {
        add(row.pid, "pages inserted", row.pages.0);
    }
    let fault_ns: u64 = tables.faults.iter().filter_map(|fault| fault.duration).map(|duration| duration.0).sum();
    let launch = tables.manifest.launch.as_ref().unwrap();
    json!({
        "processes": processes.iter().map(|(pid, counts)| (pid.to_string(), counts)).collect::<BTreeMap<_, _>>(),
        "fault_ns": fault_ns,
        "requests": tables.block_io.len(),
        "ready": launch.ready.unwrap().0,
        "names": {"70": "app", "71": "app"},
        "threads": [[70, 70], [70, 72], [71, 71]],
        "device": "block I/O of loop0 (7:0)",
        "file": "/usr/lib/bibliothèque.so",
        "clock": {"monotonic": tables.manifest.clock.monotonic.0, "realtime": tables.manifest.clock.realtime},
    })
}

/// Runs a script on the trace of a recording; skips without the definitions.
fn read_back(script: &str, tables: &Tables, expected: &Value) {
    let Some(python) = std::env::var_os("SLOWPATH_TEST_PYTHON") else {
        println!("skipped: SLOWPATH_TEST_PYTHON names no Python with the package perfetto");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (trace, counts) = (dir.path().join("trace.pftrace"), dir.path().join("expected.json"));
    std::fs::write(&trace, perfetto::export(tables).trace).unwrap();
    std::fs::write(&counts, expected.to_string()).unwrap();
    let script = format!("{}/tests/{script}", env!("CARGO_MANIFEST_DIR"));
    // Imported scripts leave no compiled copies beside the sources.
    let output = Command::new(python).arg("-B").arg(script).arg(&trace).arg(&counts).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    println!("{told}");
}

#[test]
fn perfettos_own_definitions_read_the_trace_and_count_what_the_recording_holds() {
    let tables = recording();
    read_back("perfetto_readback.py", &tables, &expected(&tables));
}

#[test]
fn perfettos_own_definitions_read_samples_waits_and_the_frames_of_call_stacks() {
    let build_id = "0123456789abcdef0123456789abcdef01234567";
    let app = |name: &str, offset: u64, source: &str| json!([name, "/usr/bin/app", offset, build_id, source]);
    let library = json!(["bibliothèque.so+0x2300", "/usr/lib/bibliothèque.so", 0x2300, null, null]);
    let usual = [
        app("main", 0x1100, "/src/main.cc"),
        app("work(int)", 0x1200, "/src/a.cc"),
        app("inlined", 0x1200, "/src/a.h"),
        library,
    ];
    let kernel = json!(["do_syscall_64", "[kernel]", 0xffff_ffff_8100_0010_u64, null, null]);
    let generated = json!([
        ["[truncated: no unwinding table]", "[truncated]", 0, null, null],
        ["[generated 0x7e0000001234]", "[generated]", 0x7e00_0000_1234_u64, null, null]
    ]);
    let unknown = json!([["[unknown]", "[unknown]", 0, null, null]]);
    let with_kernel: Vec<Value> = usual.iter().cloned().chain([kernel]).collect();
    let expected = json!({
        "samples": [
            [2_000_000, 70, 70, 0, "MODE_USER", usual],
            [3_000_000, 70, 70, 0, "MODE_USER", usual],
            [3_500_000, 70, 72, 1, "MODE_USER", generated],
            [4_000_000, 70, 70, 1, "MODE_KERNEL", with_kernel],
            [4_500_000, 70, 72, 1, "MODE_USER", unknown],
            [5_500_000, 70, 72, 1, "MODE_USER", null],
            [6_000_000, 71, 71, 0, "MODE_USER", usual[..3]],
        ],
        "slices": [
            [70, "", 2_100_000, "major fault", "bibliothèque.so+0x2300"],
            [70, "", 2_600_000, "mmap", "bibliothèque.so+0x2300"],
            [70, "", 2_700_000, "minor fault", null],
            [70, "", 2_800_000, "munmap", null],
            [70, "off CPU", 3_200_000, "futex", "bibliothèque.so+0x2300"],
            [72, "", 3_600_000, "minor fault", "[generated 0x7e0000001234]"],
            [72, "off CPU", 4_600_000, "timer", null],
        ],
    });
    read_back("perfetto_samples.py", &profiled::recording(), &expected);
}
