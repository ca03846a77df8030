//! What is reported, cross-checked against the kernel.

use crate::running::*;
use crate::traces::{assert_nothing_left, loop_devices_of, processes_with};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FAULT_HEAVY: &str = "
import mmap
m = mmap.mmap(-1, 160 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(0, 160 << 20, 4096): m[i] = 1
stat = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
print(int(stat[7]) + int(stat[9]))
";

#[test]
fn recorded_faults_agree_with_proc_to_a_thousandth() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let done = record(&out, &[], &["/usr/bin/python3", "-c", FAULT_HEAVY]);
    done.succeeds();
    let tables = tables(&out);
    let by_proc: u64 = done.stdout.trim().parse().unwrap();
    let exec = &tables.execs[0];
    let at_exit: u64 = tables.exits.iter().map(|exit| exit.min_flt + exit.maj_flt).sum();
    let counted = at_exit - exec.min_flt - exec.maj_flt;
    let seen = tables.faults.len() as u64;
    println!("recorded {seen}; the kernel counted {counted} from exec to exit; /proc said {by_proc} before the exit");
    assert!(by_proc <= at_exit && at_exit - by_proc < 1000, "the exits table is /proc's count: {at_exit}, {by_proc}");
    assert!(seen.abs_diff(counted) * 1000 <= counted, "{seen} against {counted}");
    assert_eq!(tables.manifest.losses.total(), 0);
}

/// One call of the kernel's touches 1024 pages: its faults are at one stack.
const FAULTS_OF_ONE_CALL: &str = "
import mmap, os
m = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
z = os.open('/dev/zero', os.O_RDONLY)
assert os.readv(z, [memoryview(m)]) == 4 << 20
";

/// The others have what that one took: to read the clock takes about as long as to see that the stack is the last one.
#[test]
fn of_faults_in_a_row_at_one_stack_recording_one_of_eight_is_timed() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &["--stacks", "fault"], &["/usr/bin/python3", "-S", "-c", FAULTS_OF_ONE_CALL]).succeeds();
    let tables = tables(&out);
    let in_calls: Vec<_> = tables.faults.iter().filter(|fault| fault.kernel && fault.stack.is_some()).collect();
    let at_one_stack: Vec<_> = in_calls.windows(2).filter(|pair| pair[0].stack == pair[1].stack).collect();
    let alike = at_one_stack.iter().filter(|pair| pair[0].recording == pair[1].recording).count();
    assert!(at_one_stack.len() >= 1000, "{} of {}", at_one_stack.len(), in_calls.len());
    assert!(4 * alike >= 3 * at_one_stack.len() && alike < at_one_stack.len(), "{alike} of {}", at_one_stack.len());
    assert!(in_calls.iter().all(|fault| fault.recording.is_some_and(|took| took.0 > 0)));
}

#[test]
fn bytes_of_a_cold_launch_agree_with_the_device_to_a_hundredth() {
    if !root() {
        return;
    }
    let place = place();
    let big = place.path().join("big");
    fs::write(&big, vec![7u8; 48 << 20]).unwrap();
    let mut running = start(slowpath(["lab", "run", "--json", "--", "/bin/cat"]).arg(&big));
    let pid = running.child.id();
    // The device's own counter from the moment that it is there to its last moment: the mount and the launch. A device that another
    // process is quicker to attach is held for a moment before it.
    let mut seen: Option<(PathBuf, u64, u64)> = None;
    while running.child.try_wait().unwrap().is_none() {
        let device = loop_devices_of(pid).pop_first().map(|(device, _)| device);
        if let Some((device, bytes)) = device.and_then(|device| Some((device.clone(), bytes_read(&device)?))) {
            match &mut seen {
                Some((known, _, last)) if *known == device => *last = bytes,
                _ => seen = Some((device, bytes, bytes)),
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let done = running.wait();
    done.succeeds();
    let launch = &done.json()["launches"][0];
    assert_eq!(launch["cold"], true, "{launch}");
    let said = launch["bytes_read"]["value"].as_f64().unwrap();
    let (_, first, last) = seen.expect("the device was seen");
    let device = (last - first) as f64;
    println!("lab run says {said} bytes, the device's counter {device}");
    assert!(said >= f64::from(48 << 20), "{said}");
    assert!((said - device).abs() <= 0.01 * device, "{said} against {device}");
}

/// Bytes read from a block device since it exists: sectors of 512 bytes, third field of its `stat` file.
fn bytes_read(device: &Path) -> Option<u64> {
    let stat = fs::read_to_string(device.join("stat")).ok()?;
    stat.split_whitespace().nth(2)?.parse::<u64>().ok().map(|sectors| sectors * 512)
}

#[test]
fn a_lab_run_leaves_nothing() {
    if !root() {
        return;
    }
    let (name, value) = mark();
    let throttled = ["--iops", "4000", "--bandwidth", "120M"];
    let target = ["--", "/bin/sh", "-c", "ls / > {tmp}/list; (sleep 100 &) ; exit 0"];
    let mut command = slowpath(["lab", "run", "--runs", "2"]);
    let done = run(command.args(throttled).args(target).env(name, &value));
    done.succeeds();
    assert_eq!(processes_with(&value), [] as [u32; 0]);
    assert!(!done.programs.is_empty(), "the first look was recorded");
    assert_nothing_left(&done);
}
