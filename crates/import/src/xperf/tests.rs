use crate::foreign::import_bytes;
use crate::registry::detected;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_tables::{FaultKind, MemoryCallKind, OffCpuReason};

/// Columns as the dumper of Windows 10 lists them.
const HEADER: &str = "\
BeginHeader
                P-Start,  TimeStamp,     Process Name ( PID),  ParentPID,  SessionID,        UniqueKey, UserSid, Command Line
         SampledProfile,  TimeStamp,     Process Name ( PID),   ThreadID,           PrgrmCtr, CPU, ThreadStartImage!Function,            Image!Function, Count, SampledProfile type
                  Stack,  TimeStamp,   ThreadID, No.,            Address,            Image!Function
              PageFault,  TimeStamp,     Process Name ( PID),   ThreadID,        VirtualAddr,           PrgrmCtr,                Type,            Image!Function
              HardFault,  TimeStamp,     Process Name ( PID),   ThreadID,        VirtualAddr,   ByteOffset,     IOSize, ElapsedTime,         FileObject, FileName, Hardfaulted Address Information
             FileIoRead,  TimeStamp,     Process Name ( PID),   ThreadID, LoggingProcessName ( PID), LoggingThreadID, CPU,             IrpPtr,         FileObject,   ByteOffset,       Size,      Flags, ExtraFlags, Priority, FileName, ParsedFlags
            FileIoOpEnd,  TimeStamp,     Process Name ( PID),   ThreadID, LoggingProcessName ( PID), LoggingThreadID, CPU,             IrpPtr,         FileObject, ElapsedTime,     Status,          ExtraInfo, Type, FileName
               DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName
           VirtualAlloc,  TimeStamp,     Process Name ( PID),           BaseAddr,            EndAddr, Flags
            VirtualFree,  TimeStamp,     Process Name ( PID),           BaseAddr,            EndAddr, Flags
                CSwitch,  TimeStamp, New Process Name ( PID),    New TID, NPri, NQnt, TmSinceLast, WaitTime, Old Process Name ( PID),    Old TID, OPri, OQnt,        OldState,      Wait Reason, Swapable, InSwitchTime, CPU, IdealProc
EndHeader
OS Version: 10.0.19041, Trace Size: 16384KB, Events Lost: 3, Buffers lost: 0, Trace Start: 132000000000000000, Trace Length: 10 sec, PointerSize: 8, Trace Name: Kernel
";

const EVENTS: &str = "\
                P-Start,          5,         app.exe (1200),        800,          1, 0xffff800000000000, S-1-5, \"C:\\a b\\app.exe\" --x, y
         SampledProfile,       1000,         app.exe (1200),       1204, 0xfffff80000001000,   1,         app.exe!start,     ntoskrnl.exe!KiPageFault,     1, Unbatched
                  Stack,       1000,       1204,   1, 0xfffff80000001000,     ntoskrnl.exe!KiPageFault
                  Stack,       1000,       1204,   2, 0x00007ff600001000,     app.exe!std::map<int, long>::copy
                  Stack,       1000,       1204,   3, 0x00007ff600002000,     app.exe!main
           VirtualAlloc,       2000,         app.exe (1200), 0x0000020000000000, 0x0000020000143000, 0x3000
                  Stack,       2000,       1204,   1, 0x00007ff600003000,     app.exe!allocate
           VirtualAlloc,       2001,         app.exe (1200), 0x0000020000200000, 0x0000020000300000, 0x2000
              PageFault,       2100,         app.exe (1200),       1204, 0x0000020000000000, 0x00007ff600001000,     DemandZeroFault,  app.exe!copy
              HardFault,       8729,         app.exe (1200),       1204, 0x00007ff600100000, 0x0000008000, 0x00008000,         425, 0xffffe288272d0d20, \"C:\\Program Files\\a, b\\app.dll\", N/A
             FileIoRead,       9000,         app.exe (1200),       1204,         app.exe (1200),             1204,   0, 0xffffe288851f8608, 0xffffe2889d1aa7d0, 0x0000004000, 0x00004000, 0x00000000, 0x00000000,   NotSet, \"C:\\data.bin\", read
            FileIoOpEnd,       9300,         app.exe (1200),       1204,         app.exe (1200),             1204,   0, 0xffffe288851f8608, 0xffffe2889d1aa7d0,         300, 0x00000000, 0x0000000000004000, Read, \"C:\\data.bin\"
               DiskRead,       9290,         app.exe (1200),       1204,   1, 0xffffe288b23f1b20, 0x018f0b8000, 0x00001000,         283,        0, 0x060043,         283,       3, Original, 0xffffe288272d0d20, \"C:\\data.bin\"
            VirtualFree,       9500,         app.exe (1200), 0x0000020000000000, 0x0000020000143000, 0x8000
                CSwitch,      10000,            Idle (   0),          0,    0,   -1,    10,     0,         app.exe (1200),       1204,    8,   -1,         Waiting,     WrPageIn, Swapable,    10,   1,  1
                CSwitch,      10500,         app.exe (1200),       1204,    8,   -1,   500,     5,            Idle (   0),          0,    0,   -1,         Running,    Executive, NonSwap,     10,   1,  1
              SomeOther,      10600,    1
";

pub(crate) fn trace() -> String {
    format!("{HEADER}{EVENTS}")
}

#[test]
fn events_of_windows_become_rows_by_the_names_of_their_columns() {
    let text = format!("{HEADER}{EVENTS}");
    assert_eq!(detected(text.as_bytes()).map(|one| one.name), Some("xperf"));
    let (tables, problem) = import_bytes("xperf", text.as_bytes());
    assert_eq!(problem, None);
    let path = |ino: u64| tables.files.iter().find(|file| file.ino == ino).unwrap().path.as_str();
    let stacks = CallStacks::new(&tables);
    let names = |stack| {
        let frames = stacks.outermost_first(stacks.path(stack).unwrap());
        frames.into_iter().map(|at| stacks.frames()[at as usize].functions[0].name.to_string()).collect::<Vec<_>>()
    };
    let sample = &tables.cpu_samples[0];
    assert_eq!((sample.ts.0, sample.pid, sample.tid, sample.cpu, sample.kernel), (1_000_000, 1200, 1204, 1, true));
    assert_eq!(names(sample.stack), ["main", "std::map<int, long>::copy", "KiPageFault"]);
    // What only reserves addresses is no memory.
    let calls: Vec<_> = tables.memory_calls.iter().map(|row| (row.call, row.length.0, row.tid)).collect();
    assert_eq!(calls, [(MemoryCallKind::Mmap, 0x14_3000, 1204), (MemoryCallKind::Munmap, 0x14_3000, 1200)]);
    assert_eq!(names(tables.memory_calls[0].stack), ["allocate"]);
    let faults: Vec<_> =
        tables.faults.iter().map(|row| (row.ts.0, row.kind, row.duration.map(|time| time.0))).collect();
    assert_eq!(faults, [(2_100_000, FaultKind::Minor, None), (8_304_000, FaultKind::Major, Some(425_000))]);
    let pages = &tables.page_cache[0];
    assert_eq!((path(pages.ino), pages.page.0, pages.pages.0), ("C:\\Program Files\\a, b\\app.dll", 8, 8));
    let read = &tables.reads[0];
    assert_eq!(
        (path(read.ino), read.offset.0, read.result, read.duration.0),
        ("C:\\data.bin", 0x4000, 0x4000, 300_000)
    );
    let disk = &tables.block_io[0];
    assert_eq!((disk.ts.0, disk.bytes.0, disk.read), (9_007_000, 4096, true));
    let wait = &tables.off_cpu[0];
    assert_eq!((wait.tid, wait.reason, wait.duration.0), (1204, OffCpuReason::FaultIo, 500_000));
    assert_eq!(tables.execs[0].command_line, "\"C:\\a b\\app.exe\" --x, y");
    assert_eq!((tables.manifest.host.kernel.as_str(), tables.manifest.losses.of("reads")), ("Windows 10.0.19041", 3));
    assert_eq!(tables.manifest.counters.get("not_imported.SomeOther"), Some(&1));
}

#[test]
fn damage_is_named_with_its_place_and_what_was_read_is_kept() {
    for (damage, expected) in [
        ("HardFault, 8\n", "expected as many columns"),
        ("HardFault, x, app.exe (1200), 1204, 0x7, 0x8000, 0x8000, 425, 0x1, \"a\", N/A\n", "expected numbers where"),
        ("HardFault, 9, app.exe (1200), 1204, 0x7, offset, 0x8000, 425, 0x1, \"a\", N/A\n", "expected numbers where"),
        ("nonsense\n", "expected an event of xperf's dumper"),
        ("Unlisted, what\n", "expected an event of xperf's dumper"),
    ] {
        let (tables, problem) = import_bytes("xperf", format!("{HEADER}{EVENTS}{damage}").as_bytes());
        let problem = problem.unwrap();
        assert!(problem.starts_with("trace, line ") && problem.contains(expected), "{problem}");
        assert_eq!((tables.cpu_samples.len(), tables.reads.len()), (1, 1));
    }
}
