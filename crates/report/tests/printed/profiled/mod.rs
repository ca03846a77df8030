//! A recording with call stacks of every kind, waits, faults, memory calls, losses and gaps.

use slowpath_recording::Tables;

const TEXT: &str = r#"
== manifest
{
  "command": ["/usr/bin/app", "--fast"],
  "launch": {"released": 1000000, "ready": 9000000, "ready_when": "the window is shown", "outcome": "ready"},
  "clock": {"monotonic": 1000000, "realtime": 1700000000000000000},
  "host": {"kernel": "6.18", "machine": "x86_64", "page_size": 4096, "cpus": 2, "memory_bytes": 1},
  "started": 1000000,
  "counters": {"cpu_sample_hz": 1000},
  "losses": {"stacks": 2, "faults": 0},
  "unavailable": [{"what": "instruction counts", "reason": "no counters here", "remedy": "run on the host"}]
}
== execs
ts pid start filename command_line dev ino
1_000_000 70 900 /usr/bin/app "/usr/bin/app --fast" 7340032 5
== forks
ts parent_pid parent_start pid start tid thread
2_000_000 70 900 70 900 72 true
3_000_000 70 900 71 3_000_000 71 false
== exits
ts pid start tid last running
9_500_000 71 3_000_000 71 true false
9_900_000 70 900 72 false false
== cpu_samples
ts pid start tid cpu kernel stack
2_000_000 70 900 70 0 false 2
3_000_000 70 900 70 0 false 2
4_000_000 70 900 70 1 true 3
3_500_000 70 900 72 1 false 5
4_500_000 70 900 72 1 false 77
5_500_000 70 900 72 1 false -
6_000_000 71 3_000_000 71 0 false 1
== off_cpu
ts duration pid start tid reason runnable waker_pid waker_tid syscall stack
3_200_000 600_000 70 900 70 futex 50_000 70 72 202 2
4_600_000 800_000 70 900 72 timer 0 - - 230 -
== faults
ts duration pid start tid address ip kind kernel stack
2_100_000 400_000 70 900 70 0x7f0000001000 0x400000 major false 2
2_700_000 500 70 900 70 0x7f0000002000 0x400010 minor false -
3_600_000 - 70 900 72 0x7f0000003000 0x400010 minor true 5
== memory_calls
ts duration pid start tid call address length old_length shrinks argument result stack
2_600_000 900 70 900 70 mmap 0x7f0000000000 65536 - false 34 0 2
2_800_000 100 70 900 70 munmap 0x7f0000000000 65536 - false 0 0 -
== stacks
id parent frame
0 - 0
1 0 1
2 1 2
3 2 3
4 - 4
5 4 5
== frames
id kind dev ino offset pid start address truncation
0 file 7340032 5 0x1100 - - - -
1 file 7340032 5 0x1200 - - - -
2 file 7340032 6 0x2300 - - - -
3 kernel - - - - - 0xffffffff81000010 -
4 truncated - - - - - - "no unwinding table"
5 generated - - - 70 900 0x7e0000001234 -
== symbols
frame level function source_file source_line reason
0 0 main /src/main.cc 7 -
1 0 inlined /src/a.h 3 -
1 1 "work(int)" /src/a.cc 40 -
2 0 - - - "no symbols"
3 0 do_syscall_64 - - -
== files
dev ino path size build_id
7340032 5 /usr/bin/app 65536 0123456789abcdef0123456789abcdef01234567
7340032 6 /usr/lib/bibliothèque.so 4096 -
"#;

/// The recording, sorted as one that was read.
pub fn recording() -> Tables {
    let mut tables = Tables::from_text(TEXT).unwrap();
    tables.sort();
    tables
}
