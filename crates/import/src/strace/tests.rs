use crate::foreign::import_bytes;
use slowpath_tables::{MappingOp, MemoryCallKind};

pub(crate) const TRACE: &str = r#"100 1700000000.000100 execve("/usr/bin/cat", ["cat", "/etc/a, b"], 0x7ffc /* 3 vars */) = 0 <0.000200>
100 1700000000.000400 openat(AT_FDCWD</home/u>, "a.txt", O_RDONLY|O_CLOEXEC) = 3</home/u/a.txt> <0.000010>
100 1700000000.000500 read(3</home/u/a.txt>, "x"..., 4096) = 4096 <0.000020>
100 1700000000.000600 read(3</home/u/a.txt>, "y"..., 4096) = 100 <0.000020>
100 1700000000.000700 pread64(3</home/u/a.txt>, "z"..., 64, 8192) = 64 <0.000020>
100 1700000000.000800 openat(AT_FDCWD, "/root/secret", O_RDONLY) = -1 EACCES (Permission denied) <0.000010>
100 1700000000.000900 newfstatat(AT_FDCWD, "/root/x", 0x7ffe, 0) = -1 EACCES (Permission denied) <0.000010>
100 1700000000.001000 mmap(NULL, 1320000, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000 <0.000009>
100 1700000000.001100 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3</home/u/a.txt>, 0x1000) = 0x7f0000400000 <0.000009>
100 1700000000.001200 munmap(0x7f0000000000, 1320000) = 0 <0.000300>
100 1700000000.001300 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
101 1700000000.001400 read(3</home/u/a.txt>, "q"..., 10) = 10 <0.000001>
100 1700000000.001450 <... clone resumed>, child_tidptr=0x7f) = 101 <0.000150>
100 1700000000.001460 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[102]}, 88) = 102 <0.000010>
102 1700000000.001470 brk(NULL) = 0x5000 <0.000001>
102 1700000000.001480 brk(0x9000) = 0x9000 <0.000001>
101 1700000000.001500 +++ exited with 0 +++
100 1700000000.001600 exit_group(0) = ?
"#;

#[test]
fn processes_files_and_memory_are_rows() {
    let (tables, problem) = import_bytes("strace", TRACE.as_bytes());
    assert_eq!(problem, None);
    assert_eq!(tables.manifest.command, ["cat", "/etc/a, b"]);
    let path = |ino| tables.files.iter().find(|file| file.ino == ino).map(|file| file.path.as_str());
    let reads: Vec<_> =
        tables.reads.iter().map(|row| (row.pid, path(row.ino).unwrap(), row.offset.0, row.result)).collect();
    let file = "/home/u/a.txt";
    assert_eq!(reads, [(100, file, 0, 4096), (100, file, 4096, 100), (100, file, 8192, 64), (101, file, 4196, 10)]);
    let opens: Vec<_> = tables.opens.iter().map(|row| (row.path.as_str(), row.result, row.call.is_some())).collect();
    assert_eq!(opens, [("/home/u/a.txt", 3, false), ("/root/secret", -13, false), ("/root/x", -13, true)]);
    let forks: Vec<_> = tables.forks.iter().map(|row| (row.parent_pid, row.pid, row.tid, row.thread)).collect();
    assert_eq!(forks, [(100, 101, 101, false), (100, 100, 102, true)]);
    let calls: Vec<_> = tables.memory_calls.iter().map(|row| (row.call, row.length.0, row.duration.0)).collect();
    let expected = [
        (MemoryCallKind::Mmap, 1_320_000, 9_000),
        (MemoryCallKind::Mmap, 8192, 9_000),
        (MemoryCallKind::Munmap, 1_320_000, 300_000),
        (MemoryCallKind::Brk, 0x4000, 1_000),
    ];
    assert_eq!(calls, expected);
    let mapped: Vec<_> = tables.mappings.iter().map(|row| (row.op, row.ino.and_then(path), row.offset.0)).collect();
    assert_eq!(mapped, [(MappingOp::Map, None, 0), (MappingOp::Map, Some(file), 4096), (MappingOp::Unmap, None, 0)]);
}

#[test]
fn the_recording_has_the_traces_time_of_day_and_says_what_strace_cannot_see() {
    let (tables, _) = import_bytes("strace", TRACE.as_bytes());
    let manifest = &tables.manifest;
    let first = manifest.started.0 as i64 - manifest.clock.monotonic.0 as i64 + manifest.clock.realtime;
    assert_eq!(first, 1_700_000_000_000_100_000);
    assert_eq!(manifest.ended.unwrap().0 - manifest.started.0, 1_500_000);
    let gap = |what: &str| manifest.unavailable.iter().find(|gap| gap.what == what).map(|gap| gap.reason.as_str());
    assert!(gap("probe fault").unwrap().contains("strace sees system calls only"));
    assert!(gap("probe read").is_none());
    assert!(gap("the page size of the imported trace").is_some());
}

#[test]
fn a_line_that_is_none_ends_the_import_with_its_place_and_what_was_read_is_kept() {
    let cut: String = TRACE.lines().take(4).map(|line| format!("{line}\n")).collect();
    for (damage, expected) in [
        ("100 1700000000.0007 read(3</a>", "a call as strace -T prints it"),
        ("what is this", "the begin of a line of strace"),
        ("100 12:00:00 read(3) = 0 <0.1>", "the begin of a line of strace"),
        ("100 1700000000.0007 read(3) = 0", "a call as strace -T prints it"),
    ] {
        let (tables, problem) = import_bytes("strace", format!("{cut}{damage}\n").as_bytes());
        let problem = problem.unwrap();
        let place = format!("trace, line 5 (byte {}): expected {expected}", cut.len());
        assert!(problem.starts_with(&place), "{problem}");
        assert_eq!(tables.reads.len(), 2);
        assert!(tables.manifest.unavailable.iter().any(|gap| gap.what == "the end of the recording"));
    }
}
