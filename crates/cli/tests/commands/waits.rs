//! `slowpath record --off-cpu --memory-calls`.

use crate::running::*;
use slowpath_recording::Tables;
use slowpath_tables::{MemoryCallKind, OffCpuReason};
use std::process::{Command, Stdio};

/// Sleeps and maps memory so many times.
const PROGRAM: &str = "
import mmap, sys, time
for _ in range(int(sys.argv[1])):
    mmap.mmap(-1, 300 << 12).close()
    time.sleep(0.01)
";

#[track_caller]
fn check(tables: &Tables, pid: u32) {
    let sleeps = |row: &&slowpath_tables::OffCpu| row.pid == pid && row.reason == OffCpuReason::Timer;
    assert!(tables.off_cpu.iter().filter(sleeps).count() >= 10, "{:?}", tables.off_cpu);
    let mapped = |row: &&slowpath_tables::MemoryCall| {
        row.pid == pid && row.call == MemoryCallKind::Mmap && row.length.0 == 300 << 12 && row.result == 0
    };
    let unmapped = |row: &&slowpath_tables::MemoryCall| row.pid == pid && row.call == MemoryCallKind::Munmap;
    assert!(tables.memory_calls.iter().filter(mapped).count() >= 10, "{:?}", tables.memory_calls);
    assert!(tables.memory_calls.iter().filter(unmapped).count() >= 10);
    assert!(tables.off_cpu.windows(2).all(|pair| pair[0].ts <= pair[1].ts));
}

#[test]
fn waits_and_memory_calls_of_a_command_and_of_a_running_process_are_recorded_where_they_are_asked_for() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let record = ["record", "--quiet", "-o", out.to_str().unwrap()];
    let asked = ["--off-cpu", "--memory-calls"];
    let command = ["--", "/usr/bin/python3", "-c", PROGRAM, "30"];
    run(slowpath(record).args(asked).args(command)).succeeds();
    let found = tables(&out);
    check(&found, found.execs[0].pid);

    std::fs::remove_dir_all(&out).unwrap();
    run(slowpath(record).args(command)).succeeds();
    let found = tables(&out);
    assert!(found.off_cpu.is_empty() && found.memory_calls.is_empty() && !found.mappings.is_empty());

    std::fs::remove_dir_all(&out).unwrap();
    let mut child =
        Command::new("/usr/bin/python3").args(["-c", PROGRAM, "10000"]).stdin(Stdio::null()).spawn().unwrap();
    let done = run(slowpath(record).args(asked).args(["--duration", "2", "--pid", &child.id().to_string()]));
    child.kill().unwrap();
    child.wait().unwrap();
    done.succeeds();
    check(&tables(&out), child.id());
}
