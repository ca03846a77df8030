use super::*;
use crate::foreign::import_bytes;
use crate::registry::detected;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;

/// CPU Usage (Sampled) in the columns that UIforETW's profile shows, not in order of time.
pub(crate) const SAMPLED: &str = "\u{feff}Process,Thread ID,CPU,Stack,Weight (in view) (ms),TimeStamp (s),Count
app.exe (1200),1204,1,[Root]/ntdll.dll!RtlUserThreadStart/app.exe!main/app.exe!Path::operator//app.exe!copy,1.000000,2.000300000,1
app.exe (1200),1204,1,\"[Root]/app.exe!main/app.exe!std::map<int, long>::find/ntoskrnl.exe!KiPageFault\",1.000000,2.000100000,1
app.exe (1200),1208,0,n/a,1.000000,2.000200000,1
Idle (0),0,0,n/a,1.000000,2.000400000,1
System (4),88,0,[Root]/ntoskrnl.exe!MiZeroPageThread/win.sys!<PDB not found>,1.000000,2.000500000,1
";

/// CPU Usage (Precise).
pub(crate) const PRECISE: &str = "\
New Process,New Thread Id,New Prev State,New Prev Wait Reason,CPU,Last Switch-Out Time (s),Ready Time (s),Switch-In Time (s),Readying Process,Readying Thread Id,New Thread Stack
app.exe (1200),1204,Waiting,WrAlertByThreadId,1,1.000000000,1.400000000,1.500000000,other.exe (7),8,[Root]/app.exe!main/ntdll.dll!NtWaitForAlertByThreadId
app.exe (1200),1208,Ready,Executive,0,1.100000000,,1.300000000,,,n/a
app.exe (1200),1212,Waiting,UserRequest,0,,1.100000000,1.200000000,,,n/a
Idle (0),0,Running,Executive,0,1.300000000,,1.400000000,,,n/a
";

#[test]
fn samples_have_their_stacks_in_order_of_time_whatever_the_order_of_columns_and_rows() {
    assert_eq!(detected(SAMPLED.as_bytes()).map(|one| one.name), Some("wpa-csv"));
    let (tables, problem) = import_bytes("wpa-csv", SAMPLED.as_bytes());
    assert_eq!(problem, None);
    let samples: Vec<_> = tables.cpu_samples.iter().map(|row| (row.ts.0, row.tid, row.cpu, row.kernel)).collect();
    let at = |micros: u64| 2_000_000_000 + micros * 1000;
    let expected =
        [(at(100), 1204, 1, true), (at(200), 1208, 0, false), (at(300), 1204, 1, false), (at(500), 88, 0, true)];
    assert_eq!(samples, expected);
    assert_eq!(tables.manifest.cpu_sample_hz(), Some(1000));
    let stacks = CallStacks::new(&tables);
    let names = |at: usize| {
        let path = stacks.path(tables.cpu_samples[at].stack).unwrap();
        let frames = stacks.outermost_first(path).into_iter();
        frames.map(|at| stacks.frames()[at as usize].functions[0].name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(0), ["main", "std::map<int, long>::find", "KiPageFault"]);
    assert_eq!(names(2), ["RtlUserThreadStart", "main", "Path::operator/", "copy"]);
    assert_eq!(names(3)[0], "MiZeroPageThread");
    assert!(names(3)[1].starts_with("[kernel]"), "{:?}", names(3));
    assert_eq!(tables.cpu_samples[1].stack, None);
    assert_eq!(tables.execs.iter().map(|row| row.filename.as_str()).collect::<Vec<_>>(), ["app.exe", "System"]);
}

#[test]
fn switches_are_waits_with_who_ended_them() {
    assert_eq!(detected(PRECISE.as_bytes()).map(|one| one.name), Some("wpa-csv"));
    let (tables, problem) = import_bytes("wpa-csv", PRECISE.as_bytes());
    assert_eq!(problem, None);
    let millis = |nanos: Nanos| nanos.0 / 1_000_000;
    let waits: Vec<_> = tables
        .off_cpu
        .iter()
        .map(|row| (row.tid, row.reason, millis(row.ts), millis(row.duration), millis(row.runnable), row.waker_tid))
        .collect();
    let expected =
        [(1204, OffCpuReason::Futex, 1000, 500, 100, Some(8)), (1208, OffCpuReason::Runnable, 1100, 200, 200, None)];
    assert_eq!(waits, expected);
    assert!(tables.off_cpu[0].stack.is_some() && tables.off_cpu[1].stack.is_none());
    assert_eq!(tables.manifest.ended, Some(Nanos(1_500_000_000)));
    let lacks_wake_ups =
        |tables: &Tables| tables.manifest.unavailable.iter().any(|gap| gap.what.contains("the wake-ups of threads"));
    assert!(!lacks_wake_ups(&tables));
    let without = "New Process,New Thread Id,New Prev State,Last Switch-Out Time (s),Switch-In Time (s)\n\
        app.exe (1200),1204,Waiting,1.000000000,1.500000000\n";
    let (tables, problem) = import_bytes("wpa-csv", without.as_bytes());
    assert_eq!((problem, tables.off_cpu.len()), (None, 1));
    assert!(lacks_wake_ups(&tables), "{:#?}", tables.manifest.unavailable);
}

#[test]
fn times_have_any_unit_and_the_language_of_who_exported_them() {
    let times = [("2.000300000", "s"), ("1,591.638", "ms"), ("41,063", "s"), ("12\u{a0}345,5", "\u{b5}s"), ("7", "ns")];
    let nanos = times.map(|(text, name)| time(text, unit(&format!("T ({name})"), "T").unwrap()).map(|time| time.0));
    let expected = [2_000_300_000, 1_591_638_000, 41_063_000_000, 12_345_500, 7];
    assert_eq!(nanos, expected.map(Some));
    for wrong in ["", ".5", "-1.0", "1e9", "x", "1.5x", "99999999999999999999.0", "9999999999999999.0"] {
        assert_eq!(time(wrong, 1_000_000_000), None, "{wrong}");
    }
    assert_eq!((unit("T (h)", "T"), unit("T", "T"), unit("Other (s)", "T")), (None, None, None));
    let other = SAMPLED.replace(',', ";").replace("<int; long>", "<int, long>");
    let (tables, problem) = import_bytes("wpa-csv", other.as_bytes());
    assert_eq!((tables.cpu_samples.len(), problem), (4, None));
}

#[test]
fn groups_of_rows_are_left_out_and_said() {
    let groups = "Process,Thread ID,TimeStamp (s),Count\napp.exe (1200),,,17\napp.exe (1200),1204,1.2,3\n\
        app.exe (1200),1204,1.500000000,1\n";
    let (tables, problem) = import_bytes("wpa-csv", groups.as_bytes());
    assert_eq!((tables.cpu_samples.len(), problem), (1, None));
    assert_eq!(tables.manifest.counters.get("not_imported.rows of groups"), Some(&2));
    assert!(tables.manifest.unavailable.iter().any(|gap| gap.what.contains("the rows behind sums")));
}

#[test]
fn what_is_no_row_names_its_line_and_those_before_it_are_kept() {
    for (damage, expected) in [
        ("app.exe (1200),1204", "as many fields as the first line has columns"),
        ("app.exe (1200),x,1,n/a,1.0,2.5,1", "times and ids as WPA exports them"),
        ("app.exe (1200),1204,1,n/a,1.0,soon,1", "times and ids as WPA exports them"),
    ] {
        let (tables, problem) = import_bytes("wpa-csv", format!("{SAMPLED}{damage}\n").as_bytes());
        let problem = problem.unwrap();
        assert!(problem.starts_with("trace, line 7 ") && problem.contains(expected), "{problem}");
        assert_eq!(tables.cpu_samples.len(), 4);
    }
    for other in ["", "a,b\n", "Process,Thread ID,Count\n", "Process,TimeStamp (s)\n"] {
        assert!(import_bytes("wpa-csv", other.as_bytes()).1.is_some_and(|problem| problem.contains("WPA's columns")));
        assert!(detected(other.as_bytes()).is_none(), "{other:?}");
    }
}
