//! Following processes that run already, against the running kernel. Needs root; skips with a reason otherwise.
//!
//! A program of its own: a recording of the whole system holds what other tests of the same process fork, too.

#[path = "recorder/targets/mod.rs"]
mod targets;

use slowpath_capture::{Options, Recorder, Running, decode};
use slowpath_recording::Tables;
use slowpath_tables::MappingOp;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use targets::root;

/// Two threads that each touch so many fresh pages when a line comes, and a child that does too.
const PAGES: usize = 5000;
const PROGRAM: &str = "
import mmap, os, sys, threading
def touch(pages):
    m = mmap.mmap(-1, pages << 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(0, pages << 12, 4096): m[i] = 1
gate = threading.Barrier(2)
def other():
    gate.wait()
    touch(PAGES)
thread = threading.Thread(target=other)
thread.start()
touch(3000)
print('ready', flush=True)
sys.stdin.readline()
gate.wait()
thread.join()
touch(PAGES)
if os.fork() == 0:
    touch(PAGES)
    os._exit(0)
os.wait()
print('done', flush=True)
sys.stdin.readline()
";

/// A process that ends with the test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, once it has said that it is ready.
fn started() -> (Ended, impl FnMut(&str) -> String + Send) {
    let program = PROGRAM.replace("PAGES", &PAGES.to_string());
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", &program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut talk = move |line: &str| {
        input.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        answer
    };
    assert_eq!(talk(""), "ready\n");
    (Ended(child), talk)
}

fn followed(which: impl FnOnce(u32) -> Running) -> (Tables, u32) {
    let (child, mut talk) = started();
    let pid = child.0.id();
    let mut recorder = Recorder::load(Options { running: true, ..Options::default() }).unwrap();
    recorder.attach_running(&which(pid)).unwrap();
    // Emptied meanwhile: the whole system may be busy.
    std::thread::scope(|scope| {
        let talking = scope.spawn(|| assert_eq!(talk("go\n"), "done\n"));
        while !talking.is_finished() {
            recorder.drain().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let raw = recorder.finish().unwrap();
    // This very machine's kernel leaves its init out of every walk, as far as it was seen.
    assert!(raw.facts.unavailable.iter().all(|one| one.what == "process 1"), "{:?}", raw.facts.unavailable);
    (decode(&raw), pid)
}

/// Faults of a process in the recording, and by the kernel's own counters from the moment it was followed.
fn faults(out: &Tables, pid: u32) -> (u64, u64) {
    let exec = out.execs.iter().find(|exec| exec.pid == pid).unwrap();
    let counted: u64 = out.exits.iter().filter(|exit| exit.pid == pid).map(|exit| exit.min_flt + exit.maj_flt).sum();
    let recorded = out.faults.iter().filter(|fault| fault.pid == pid).count() as u64;
    (recorded, counted - exec.min_flt - exec.maj_flt)
}

#[test]
fn a_running_process_is_followed_with_its_threads_and_later_children() {
    if !root() {
        return;
    }
    let (out, pid) = followed(|pid| Running::Processes(vec![pid]));
    assert_eq!(out.manifest.losses.total(), 0, "{:?}", out.manifest.losses);
    let exec = out.execs.iter().find(|exec| exec.pid == pid).unwrap();
    assert!(exec.present && exec.command_line.starts_with("/usr/bin/python3 -c "), "{exec:?}");
    let program = out.files.iter().find(|file| (file.dev, file.ino) == (exec.dev, exec.ino)).unwrap();
    assert!(program.path.contains("/bin/python3"), "{program:?}");
    // What was touched before is the base of the counters, not part of the recording.
    assert!(exec.min_flt > 3000, "{exec:?}");
    let (recorded, counted) = faults(&out, pid);
    assert!(recorded >= 2 * PAGES as u64, "{recorded}");
    assert!(recorded.abs_diff(counted) <= counted / 200, "{recorded} recorded, {counted} by the kernel's counters");
    let libc = out.files.iter().find(|file| file.path.ends_with("/libc.so.6")).expect("its libraries are named");
    let mapped = |row: &&slowpath_tables::Mapping| row.pid == pid && row.op == MappingOp::Exec;
    assert!(out.mappings.iter().filter(mapped).any(|row| row.ino == Some(libc.ino)));
    let child = out.forks.iter().find(|fork| fork.parent_pid == pid && !fork.thread).expect("the later child");
    let of_child = out.faults.iter().filter(|fault| fault.pid == child.pid).count();
    assert!(of_child >= PAGES, "{of_child}");
    assert!(out.faults.iter().all(|fault| fault.pid == pid || fault.pid == child.pid));
}

#[test]
fn the_whole_system_is_everybody_but_the_recorder() {
    if !root() {
        return;
    }
    let (out, pid) = followed(|_| Running::System);
    let (recorded, counted) = faults(&out, pid);
    // Everybody together can be faster than the ring is emptied.
    let (lost, margin) = (out.manifest.losses.of("faults"), counted / 200);
    assert!(
        recorded <= counted + margin && recorded + lost + margin >= counted,
        "{recorded} recorded, {lost} lost of all, {counted} by the kernel's counters"
    );
    let present = |pid: u32| out.execs.iter().any(|exec| exec.present && exec.pid == pid);
    assert!(present(std::os::unix::process::parent_id()));
    assert!(!present(std::process::id()));
    assert!(!out.faults.iter().any(|fault| fault.pid == std::process::id()));
    // Threads of the kernel have a name and no program.
    let kernel = out.execs.iter().find(|exec| exec.filename == "kthreadd").expect("the kernel's own");
    assert_eq!((kernel.ino, kernel.command_line.as_str()), (0, ""));
}

/// Faults go on while the recording ends, and the kernel's counters with them.
#[test]
fn a_process_that_faults_until_the_last_is_counted_to_the_fault() {
    if !root() {
        return;
    }
    let program = "
import mmap
while True:
    m = mmap.mmap(-1, 1000 << 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(0, 1000 << 12, 4096): m[i] = 1
";
    let child = Ended(Command::new("/usr/bin/python3").args(["-c", program]).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    let mut recorder = Recorder::load(Options { running: true, ..Options::default() }).unwrap();
    let pid = child.0.id();
    recorder.attach_running(&Running::Processes(vec![pid])).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    recorder.drain().unwrap();
    let raw = recorder.finish().unwrap();
    assert_eq!(raw.facts.losses.total(), 0, "{:?}", raw.facts.losses);
    let (recorded, counted) = faults(&decode(&raw), pid);
    assert!(recorded > 1000, "{recorded}");
    // One may be on its way at each end.
    assert!(recorded.abs_diff(counted) <= 2, "{recorded} recorded, {counted} by the kernel's counters");
}
