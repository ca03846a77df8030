//! A recording with a row of every table, as text, and writing it.

use slowpath_recording::{Tables, Writer};
use std::path::Path;

pub const EVERY_TABLE: &str = r#"
== manifest
{
  "created": "2026-01-02T03:04:05Z",
  "command": ["/usr/bin/app", "--fast"],
  "launch": {"released": 10, "ready": 900, "ready_when": "the process exited", "outcome": "ready"},
  "probes": [{"name": "faults", "state": "attached"}, {"name": "stacks", "state": "unavailable"}],
  "losses": {"ring_buffer": 3}
}
== forks
ts parent_pid parent_start pid start tid thread
11 7          5            8   11    8   false
== execs
ts pid start parent_pid uid gid filename command_line dev ino min_flt maj_flt
12 8 11 7 1000 1000 /usr/bin/app "/usr/bin/app --fast" 265289728 42 60 1
== exits
ts pid start tid last status signal min_flt maj_flt utime stime read_bytes running
90 8 11 8 true 0 - 100 7 1_000 2_000 28672 false
91 8 11 9 false - 9 1 0 1 2 0 true
== first_waits
ts pid start waited syscall command_line
19 8 11 5000 232 "/usr/bin/app --fast"
== faults
ts duration pid start tid address ip kind kernel stack
20 -    8 11 8 0x7f0000001000 0x400000 minor false -
21 1500 8 11 8 0x7f0000002000 0x400010 major true 1
== mappings
ts pid start op address length prot dev ino offset
13 8 11 map 0x7f0000000000 65536 5 265289728 42 0
14 8 11 unmap 0x7f0000000000 65536 0 - - 0
== page_cache
ts pid start tid op dev ino page pages asker syscall
22 8 11 8 add 265289728 42 0 1 fault -1
23 8 11 8 add 265289728 42 1 4 read 0
== readaheads
ts pid start tid dev ino page pages kind
22 8 11 8 265289728 42 0 32 sync
== block_io
ts latency dev sector bytes read pid in_tree
22 80000 265289728 2048 131072 true 8 true
23 -     265289728 4096 4096 false 2 false
== opens
ts pid start tid path flags result dev ino
15 8 11 8 "/etc/a file\u202e" 0 3 265289728 43
16 8 11 8 "-" 0 -2 - -
== reads
ts duration pid start tid dev ino offset result syscall
17 300 8 11 8 265289728 43 0 4096 0
== cpu_samples
ts pid start tid cpu kernel stack first_argument second_argument copies
30 8 11 8 1 true 1 0x7f0000001000 0xffffffffffffffff true
== off_cpu
ts duration pid start tid reason runnable waker_pid waker_tid syscall stack
31 700 8 11 8 futex 20 9 9 202 1
== cpu_events
ts duration cpu kind name tid value
30 50 1 task "a thread" 8 120
31 - 0 frequency frequency - 1800000
== thread_counters
ts pid start tid name end run_time utime stime run_delay
33 8 11 8 "a thread" true 400 300 100 -
== memory_calls
ts duration pid start tid call address length old_length shrinks argument result stack
32 900 8 11 8 mremap 0x7f0000000000 8192 4096 false 1 0 -
== page_contents
ts duration pid start tid moment address stride pages present zero
33 700 8 11 8 exit 0x7f0000000000 8192 3 5 4
== memory_work
ts duration pid start tid in_tree work node pages succeeded
34 500 8 11 8 true direct_reclaim - 32 true
35 -   9 0  9 false wake_kswapd   0 0  true
== stacks
id parent frame
0  -      0
1  0      1
== frames
id kind dev ino offset pid start address truncation
0  truncated - - - - - - "the memory of the stack could not be read"
1  file 265289728 42 4660 - - - -
== symbols
frame level function source_file source_line reason
0 0 - - - truncated
1 0 "operator<<(char)" /src/a.cc 7 -
1 1 main - - -
== files
dev ino path directory size mtime build_id host_dev host_ino
265289728 42 /usr/bin/app false 65536 1700000000000000000 ab12 - -
265289728 43 "/etc/a file" false - -1 - 265289729 7
== sections
dev ino name kind offset size
265289728 42 .text text 4096 32768
== relocations
dev ino program fixed relative packed symbolic calls own table_bytes libraries bind_now symbolic_binding gnu_hash
265289728 42 true false 700 30 20 10 5 17_560 3 true false true
"#;

pub fn every_table() -> Tables {
    Tables::from_text(EVERY_TABLE).unwrap()
}

/// Pushes all rows of `tables`.
pub fn push_all(writer: &mut Writer, tables: &Tables) {
    tables.clone().write(writer).unwrap();
}

/// `count` rows of the page cache that look like a launch: a few files, mostly forward, some jumps.
pub fn page_cache(from: u64, count: u64) -> impl Iterator<Item = slowpath_tables::PageCache> {
    use slowpath_tables::{Asker, Nanos, PageCache, PageCacheOp, Pages};
    (from..from + count).map(|i| PageCache {
        ts: Nanos(1_000_000_000 + i * 1_777 + i * i % 991),
        pid: 100 + (i / 5_000 % 7) as u32,
        start: Nanos(999_000_000),
        tid: 100 + (i / 700 % 31) as u32,
        op: PageCacheOp::Add,
        dev: 7 << 20,
        ino: 11 + i / 9_000 % 200,
        page: Pages(i.wrapping_mul(2_654_435_761) % 30_000 / 32 * 32 + i % 32),
        pages: Pages(1),
        asker: if i % 11 == 0 { Asker::Read } else { Asker::Fault },
        syscall: if i % 11 == 0 { 0 } else { -1 },
    })
}

/// All files below `dir`, relative, sorted, with their permission bits.
pub fn modes(dir: &Path) -> Vec<(String, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        found.push((folder.display().to_string(), folder.metadata().unwrap().permissions().mode() & 0o7777));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.display().to_string(), path.metadata().unwrap().permissions().mode() & 0o7777));
            }
        }
    }
    found.sort();
    found
}
