//! Programs with known waits: the reason of each, its place in time, and who ended it.

use crate::held::{alone, facts, recorded, undisturbed};
use crate::targets::root;
use slowpath_capture::{Options, Recorder, Running, decode};
use slowpath_recording::Tables;
use slowpath_tables::{OffCpu, OffCpuReason};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Every stage waits in a thread of its own and says which; what ends a wait says so too, after 200 ms: on a busy machine the other
/// thread needs some of them until it waits, or does not come to wait for what is there at once.
const STAGES: &str = "
import ctypes, mmap, os, resource, select, signal, socket, sys, threading, time
facts = open(sys.argv[1], 'w')
def fact(name, number): facts.write(f'{name} {number}\\n')
def threads(*works):
    def body(name, work):
        fact(name, threading.get_native_id())
        work()
    all = [threading.Thread(target=body, args=pair) for pair in works]
    for one in all: one.start()
    for one in all: one.join()
def later(work):
    def body():
        time.sleep(0.2)
        work()
    return body
def timer():
    for _ in range(5): time.sleep(0.02)
threads(('timer', timer))
threads(('poll', lambda: select.poll().poll(30)))
r, w = os.pipe()
threads(('pipe', lambda: os.read(r, 1)), ('pipe_waker', later(lambda: os.write(w, b'x'))))
one, two = socket.socketpair()
threads(('socket', lambda: one.recv(1)), ('socket_waker', later(lambda: two.send(b'x'))))
server = socket.create_server(('127.0.0.1', 0))
near = socket.create_connection(server.getsockname())
far = server.accept()[0]
threads(('tcp', lambda: far.recv(1)), ('tcp_waker', later(lambda: near.send(b'x'))))
lock = threading.Lock()
lock.acquire()
threads(('futex', lock.acquire), ('futex_waker', later(lock.release)))
def child():
    pid = os.fork()
    if pid == 0:
        time.sleep(0.2)
        os._exit(0)
    fact('child_waker', pid)
    os.waitpid(pid, 0)
threads(('child', child))
threads(('spawn', lambda: os.waitpid(os.posix_spawn('/bin/sleep', ['/bin/sleep', '0.2'], {}), 0)))
def until_it_waits(read):
    # Reads may be over before the thread comes to wait, more than a few in a row where a hypervisor takes the CPU for them.
    waits = lambda: resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    begin, deadline = waits(), time.monotonic() + 10
    while waits() == begin and time.monotonic() < deadline: read()
def direct():
    file = os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECT)
    def read():
        for at in range(0, 16 << 20, 1 << 20): os.preadv(file, [mmap.mmap(-1, 1 << 20)], at)
    until_it_waits(read)
threads(('other_io', direct))
def touch():
    file = os.open(sys.argv[3], os.O_RDONLY)
    def read():
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(file, 0, prot=mmap.PROT_READ) as m:
            m.madvise(mmap.MADV_RANDOM)
            for at in range(0, 16 << 20, 1 << 18): m[at]
    until_it_waits(read)
threads(('fault_io', touch))
facts.close()
";

fn cold_file(directory: &std::path::Path, name: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, vec![7u8; 16 << 20]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: fadvise takes a descriptor and integers. The file is this test's own.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    path.to_str().unwrap().to_owned()
}

fn waits() -> Options {
    Options { waits: true, ..Options::default() }
}

struct Staged {
    out: Tables,
    facts: HashMap<String, u64>,
}

impl Staged {
    fn record() -> Self {
        let (out, facts) = undisturbed(Self::attempt);
        Self { out, facts }
    }

    fn attempt() -> (Tables, HashMap<String, u64>) {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let said = directory.path().join("facts");
        let (direct, mapped) = (cold_file(directory.path(), "direct"), cold_file(directory.path(), "mapped"));
        let command = ["/usr/bin/python3", "-c", STAGES, said.to_str().unwrap(), &direct, &mapped];
        let out = recorded(waits(), &command, |_| ());
        (out, facts(&said))
    }

    /// Intervals of a stage's thread with this reason that are no shorter.
    fn of(&self, stage: &str, reason: OffCpuReason, shortest_ms: u64) -> Vec<&OffCpu> {
        let meant = |row: &&OffCpu| {
            u64::from(row.tid) == self.facts[stage] && row.reason == reason && row.duration.0 >= shortest_ms * 1_000_000
        };
        self.out.off_cpu.iter().filter(meant).collect()
    }

    /// The one long wait of a stage, which `<stage>_waker` ended.
    #[track_caller]
    fn check_woken(&self, stage: &str, reason: OffCpuReason) {
        let found = self.of(stage, reason, 100);
        assert_eq!(found.len(), 1, "{stage}: {found:?}");
        let waker = self.facts[&format!("{stage}_waker")];
        assert_eq!(found[0].waker_tid.map(u64::from), Some(waker), "{stage}: {found:?}");
        assert!(found[0].runnable < found[0].duration && found[0].syscall >= 0, "{stage}: {found:?}");
    }
}

#[test]
fn each_wait_has_its_reason_and_the_task_that_ended_it() {
    if !root() {
        return;
    }
    let staged = Staged::record();
    let sleeps = staged.of("timer", OffCpuReason::Timer, 1);
    assert_eq!(sleeps.len(), 5, "{sleeps:?}");
    assert!(sleeps.iter().all(|row| row.waker_tid.is_none()), "a timer is nobody: {sleeps:?}");
    let polls = staged.of("poll", OffCpuReason::Poll, 30);
    assert!(polls.len() == 1 && polls[0].waker_tid.is_none(), "{polls:?}");
    staged.check_woken("pipe", OffCpuReason::PipeOrSocket);
    staged.check_woken("socket", OffCpuReason::PipeOrSocket);
    staged.check_woken("tcp", OffCpuReason::PipeOrSocket);
    staged.check_woken("futex", OffCpuReason::Futex);
    staged.check_woken("child", OffCpuReason::Child);
    assert!(!staged.of("spawn", OffCpuReason::Child, 1).is_empty());
    let io = staged.of("other_io", OffCpuReason::OtherIo, 0);
    let all = |stage: &str| {
        let of_stage = |row: &&OffCpu| u64::from(row.tid) == staged.facts[stage];
        staged.out.off_cpu.iter().filter(of_stage).collect::<Vec<_>>()
    };
    // Not each read: some are over before the thread comes to wait.
    assert!(!io.is_empty() && io.iter().all(|row| row.syscall >= 0), "{:?}", all("other_io"));
    let faults = staged.of("fault_io", OffCpuReason::FaultIo, 0);
    assert!(!faults.is_empty() && faults.iter().all(|row| row.syscall == -1), "{:?}", all("fault_io"));
    // Each lies in a major fault of the same thread.
    for wait in faults {
        let (from, to) = (wait.ts.0, wait.ts.0 + wait.duration.0);
        let holds = |fault: &&slowpath_tables::Fault| {
            fault.tid == wait.tid
                && fault.ts.0 <= from
                && fault.duration.is_some_and(|duration| to <= fault.ts.0 + duration.0)
        };
        assert!(staged.out.faults.iter().any(|fault| holds(&fault)), "{wait:?}");
    }
    let sorted = staged.out.off_cpu.windows(2).all(|pair| pair[0].ts <= pair[1].ts);
    assert!(sorted);
}

#[test]
fn a_stopped_thread_is_stopped_until_somebody_continues_it() {
    if !root() {
        return;
    }
    use nix::sys::signal::{Signal, kill};
    let mut ticks = 0;
    // It ends when it was continued.
    let script = "import signal, time
signal.signal(signal.SIGCONT, lambda *_: exit(0))
while True: time.sleep(0.01)";
    let out = recorded(waits(), &["/usr/bin/python3", "-c", script], |pid| {
        ticks += 1;
        match ticks {
            100 => kill(pid, Signal::SIGSTOP).unwrap(),
            120.. => drop(kill(pid, Signal::SIGCONT)),
            _ => {}
        }
    });
    let stopped: Vec<_> = out.off_cpu.iter().filter(|row| row.reason == OffCpuReason::Stopped).collect();
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    assert_eq!(stopped[0].waker_pid, Some(std::process::id()));
}

#[test]
fn waits_that_began_before_the_recording_or_outlast_it_are_reported() {
    if !root() {
        return;
    }
    // The main thread reads, another waits for a lock for ever, a third waits for the lock that the main thread gives back.
    let script = "
import sys, threading
for_ever, at_go = threading.Lock(), threading.Lock()
for_ever.acquire(), at_go.acquire()
threading.Thread(target=for_ever.acquire, daemon=True).start()
threading.Thread(target=at_go.acquire, daemon=True).start()
print('ready', flush=True)
sys.stdin.readline()
at_go.release()
print('done', flush=True)
sys.stdin.readline()
";
    let (out, (pid, before_end, ended)) = undisturbed(|| recorded_amid(script));
    let is_open = |row: &OffCpu| (before_end..=ended).contains(&(row.ts.0 + row.duration.0));
    let of = |tid: &u32| out.off_cpu.iter().filter(|row| row.tid == *tid).collect::<Vec<_>>();
    let mut tids: Vec<u32> = out.off_cpu.iter().map(|row| row.tid).collect();
    tids.sort_unstable();
    tids.dedup();
    assert!(tids.len() == 3 && tids[0] == pid, "{:?}", out.off_cpu);
    // Asleep at the beginning, woken by this test; asleep again at the end.
    let main = of(&pid);
    assert!(main.len() >= 2 && main[0].reason == OffCpuReason::PipeOrSocket, "{main:?}");
    assert_eq!(main[0].waker_pid, Some(std::process::id()));
    let last = main[main.len() - 1];
    assert!(last.reason == OffCpuReason::PipeOrSocket && is_open(last) && last.runnable.0 == 0);
    // One was asleep all the time; the other's first wait was ended by the main thread.
    let others: Vec<_> = tids[1..].iter().map(of).collect();
    let whole = others.iter().find(|rows| rows.len() == 1).expect("one never ran")[0];
    assert!(whole.reason == OffCpuReason::Futex && whole.waker_tid.is_none(), "{whole:?}");
    assert!(whole.ts.0 < main[0].ts.0 + main[0].duration.0 && is_open(whole), "{whole:?}");
    let woken = others.iter().find(|rows| rows[0].waker_tid.is_some()).expect("one was woken")[0];
    assert_eq!((woken.reason, woken.waker_tid), (OffCpuReason::Futex, Some(pid)));
}

/// The system calls in which the threads of a process sleep, in the order in which they were made; -1 for one that does not.
fn sleeps_in(pid: u32) -> Vec<i64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut tids: Vec<u32> = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    let call = |tid: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default();
        text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(-1)
    };
    tids.iter().map(call).collect()
}

#[track_caller]
fn until(is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come to wait");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Records a running program while it goes on: with its pid, and two moments at the end of the recording.
fn recorded_amid(script: &str) -> (Tables, (u32, u64, u64)) {
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    until(|| sleeps_in(child.id()) == [libc::SYS_read, libc::SYS_futex, libc::SYS_futex]);
    let _alone = alone();
    let mut recorder = Recorder::load(Options { running: true, ..waits() }).unwrap();
    recorder.attach_running(&Running::Processes(vec![child.id()])).unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"go\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "done");
    until(|| sleeps_in(child.id()).first() == Some(&libc::SYS_read));
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    let before_end = Duration::from(now).as_nanos() as u64;
    let raw = recorder.finish().unwrap();
    let pid = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    (decode(&raw), (pid, before_end, raw.facts.ended.0))
}
