//! The recorder against the running kernel: real processes, and the kernel's own counters as the witness.
//! Needs root; skips with a reason otherwise.

use crate::copy_program;
use crate::targets::{held, root};
use slowpath_capture::{Options, RawCapture, Recorder, StackEvents, UNREADABLE_BYTES, decode};
use slowpath_recording::Tables;
use slowpath_tables::{Asker, FaultKind, FileKey, MappingOp};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

fn recorded(command: &[&str]) -> (Tables, nix::unistd::Pid) {
    recorded_with(Options::default(), command)
}

fn recorded_with(options: Options, command: &[&str]) -> (Tables, nix::unistd::Pid) {
    let mut recorder = Recorder::load(options).unwrap();
    let (child, release) = held(command);
    recorder.attach_tree(child.as_raw()).unwrap();
    nix::unistd::write(&release, b"x").unwrap();
    loop {
        recorder.drain().unwrap();
        let flags = Some(nix::sys::wait::WaitPidFlag::WNOHANG);
        if nix::sys::wait::waitpid(child, flags).unwrap() != nix::sys::wait::WaitStatus::StillAlive {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let raw = recorder.finish().unwrap();
    assert_eq!(raw.facts.losses.total(), 0, "{:?}", raw.facts.losses);
    assert!(raw.facts.unavailable.is_empty(), "{:?}", raw.facts.unavailable);
    let _ = release.as_raw_fd();
    (decode(&raw), child)
}

const FAULT_HEAVY: &str = "
import mmap
m = mmap.mmap(-1, 80 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(0, 80 << 20, 4096): m[i] = 1
";

#[test]
fn recorded_faults_agree_with_the_kernels_counters_to_a_thousandth() {
    if !root() {
        return;
    }
    for fault_entry in [true, false] {
        let options = Options { fault_entry, ..Options::default() };
        let (out, _) = recorded_with(options, &["/usr/bin/python3", "-c", FAULT_HEAVY]);
        assert_eq!(out.manifest.counters[UNREADABLE_BYTES], 0);
        let exec = &out.execs[0];
        let counted: u64 =
            out.exits.iter().map(|exit| exit.min_flt + exit.maj_flt).sum::<u64>() - exec.min_flt - exec.maj_flt;
        // The events begin a moment before the exec is recorded with the counters.
        let seen = out.faults.iter().filter(|fault| fault.ts >= exec.ts).count() as u64;
        println!("entry tracepoints {fault_entry}: recorded {seen} faults, the kernel counted {counted}");
        assert!(counted >= 20480 && seen.abs_diff(counted) * 1000 <= counted, "{seen} against {counted}");
        let with_duration = out.faults.iter().filter(|fault| fault.duration.is_some()).count();
        assert!(
            with_duration * 1000 >= out.faults.len() * 999,
            "{with_duration} of {} have a duration",
            out.faults.len()
        );
    }
}

/// Reads each page of a file from storage: it leaves the cache first, and nothing is read ahead.
const READS_PAGES: &str = "
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
m = mmap.mmap(file, 0, prot=mmap.PROT_READ)
m.madvise(mmap.MADV_RANDOM)
for i in range(0, len(m), mmap.PAGESIZE): m[i]
";

/// With call stacks one program serves both kinds of ends, without them there is one for each.
#[test]
fn faults_that_wait_for_storage_are_distinguished_from_others_with_and_without_call_stacks() {
    if !root() {
        return;
    }
    let mut file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    file.write_all(&vec![1; 1 << 20]).unwrap();
    file.as_file().sync_all().unwrap();
    for (faults, fault_entry) in [(false, true), (true, true), (false, false), (true, false)] {
        let options =
            Options { fault_entry, stacks: StackEvents { faults, ..Default::default() }, ..Options::default() };
        let path = file.path().to_str().unwrap();
        let (out, _) = recorded_with(options, &["/usr/bin/python3", "-S", "-c", READS_PAGES, path]);
        let exec = &out.execs[0];
        let ended = &out.exits[0];
        let counted = [ended.min_flt - exec.min_flt, ended.maj_flt - exec.maj_flt];
        let seen = [FaultKind::Minor, FaultKind::Major].map(|kind| {
            let of_kind = out.faults.iter().filter(|fault| fault.kind == kind && fault.ts >= exec.ts);
            of_kind.count() as u64
        });
        println!("stacks {faults}, entry tracepoints {fault_entry}: recorded {seen:?}, the kernel counted {counted:?}");
        if counted[1] < 8 {
            return println!("skipped: files in /var/tmp are not read from storage");
        }
        // The kernel counts some that it takes itself, too.
        let is_near = |at: usize| seen[at].abs_diff(counted[at]) <= 1 + counted[at] / 100;
        assert!(is_near(0) && is_near(1), "recorded {seen:?}, the kernel counted {counted:?}");
    }
}

#[test]
fn faults_that_the_kernel_takes_for_a_system_call_are_distinguished_from_the_programs_own() {
    if !root() {
        return;
    }
    // 1024 pages are first touched by read(2), 1024 others by the program.
    let script = "
import mmap, os
m = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
z = os.open('/dev/zero', os.O_RDONLY)
assert os.readv(z, [memoryview(m)[:4 << 20]]) == 4 << 20
for i in range(4 << 20, 8 << 20, 4096): m[i] = 1
";
    let (out, _) = recorded(&["/usr/bin/python3", "-c", script]);
    let (kernel, user): (Vec<_>, Vec<_>) = out.faults.iter().partition(|fault| fault.kernel);
    assert!((1024..2048).contains(&kernel.len()), "{} in kernel mode", kernel.len());
    assert!(user.len() >= 1024 && user.iter().all(|fault| fault.ip >> 63 == 0), "{} in user mode", user.len());
}

#[test]
fn the_tree_is_followed_through_forks_with_command_lines_and_ends() {
    if !root() {
        return;
    }
    let (out, child) = recorded(&["/bin/sh", "-c", "/bin/ls / >/dev/null; /bin/false; kill -9 $$"]);
    let lines: Vec<&str> = out.execs.iter().map(|exec| exec.command_line.as_str()).collect();
    assert_eq!(lines, ["/bin/sh -c /bin/ls / >/dev/null; /bin/false; kill -9 $$", "/bin/ls /", "/bin/false"]);
    let ends: Vec<_> = out.exits.iter().filter(|exit| exit.last).map(|exit| (exit.status, exit.signal)).collect();
    assert_eq!(ends, [(Some(0), None), (Some(1), None), (None, Some(9))]);
    assert_eq!(out.execs[0].pid, child.as_raw() as u32);
    assert_eq!(out.execs[1].parent_pid, child.as_raw() as u32);
}

#[test]
fn of_threads_that_end_together_one_is_the_last_on_older_kernels_too() {
    if !root() {
        return;
    }
    let script = "
import os, threading, time
for _ in range(40):
    if not os.fork():
        for _ in range(16): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        os._exit(0)
    os.wait()
";
    for exit_memory in [true, false] {
        let options = Options { exit_memory, ..Options::default() };
        let (out, _) = recorded_with(options, &["/usr/bin/python3", "-c", script]);
        let mut threads: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for exit in &out.exits {
            let (all, last) = threads.entry(exit.pid).or_default();
            *all += 1;
            *last += u32::from(exit.last);
        }
        assert_eq!(threads.len(), 41, "{threads:?}");
        assert!(threads.values().all(|(_, last)| *last == 1), "{exit_memory}: {threads:?}");
        assert_eq!(threads.values().filter(|(all, _)| *all == 17).count(), 40, "{threads:?}");
    }
}

#[test]
fn what_was_recorded_can_be_taken_before_the_programs_are_detached() {
    if !root() {
        return;
    }
    let mut recorder = Recorder::load(Options::default()).unwrap();
    let (child, release) = held(&["/bin/true"]);
    recorder.attach_tree(child.as_raw()).unwrap();
    nix::unistd::write(&release, b"x").unwrap();
    nix::sys::wait::waitpid(child, None).unwrap();
    // Everything is in the ring still.
    let mut taken = Vec::new();
    let raw = recorder.finish_with(|recorder| taken = recorder.take()).unwrap();
    let of = |bytes: Vec<u8>| decode(&RawCapture { bytes, facts: raw.facts.clone() });
    let (taken, rest) = (of(taken), of(raw.bytes.clone()));
    assert_eq!((taken.execs.len(), taken.exits.len()), (1, 1));
    assert_eq!((rest.execs.len(), rest.exits.len(), rest.mappings.len()), (0, 0, 0));
}

#[test]
fn files_opened_mapped_and_read_are_named_by_their_host_path() {
    if !root() {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("data");
    std::fs::write(&path, vec![7u8; 40_960]).unwrap();
    let name = path.to_str().unwrap();
    // Not `cat`: where its output is a file it copies inside the kernel, without a read.
    let (out, _) = recorded(&["/usr/bin/md5sum", name]);
    let file = out.files.iter().find(|file| file.path == name).expect("the file is named");
    let open = out.opens.iter().find(|open| open.path == name).expect("the open is recorded");
    assert_eq!((open.dev, open.ino), (Some(file.dev), Some(file.ino)));
    let read: i64 =
        out.reads.iter().filter(|read| read.ino == file.ino && read.result > 0).map(|read| read.result).sum();
    assert_eq!(read, 40_960);
    let libc = out.files.iter().find(|file| file.path.ends_with("/libc.so.6")).expect("libc is named");
    assert!(out.mappings.iter().any(|row| row.ino == Some(libc.ino) && row.op == MappingOp::Map));
    let program = out.files.iter().find(|file| file.path.ends_with("bin/md5sum")).expect("the program is named");
    assert!(out.mappings.iter().any(|row| row.ino == Some(program.ino) && row.op == MappingOp::Exec));
    let missing = out.opens.iter().filter(|open| open.result < 0).all(|open| open.dev.is_none());
    assert!(missing);
}

#[test]
fn relative_paths_are_reported_from_the_directory_that_they_start_from() {
    if !root() {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = directory.path().to_str().unwrap();
    std::fs::create_dir(directory.path().join("a")).unwrap();
    std::fs::write(directory.path().join("data"), "data").unwrap();
    let script = format!(
        "import os\n\
         def tries(path, **where):\n\
         \ttry: os.open(path, os.O_RDONLY, **where)\n\
         \texcept OSError: pass\n\
         os.chdir('{place}/a')\n\
         tries('none'); tries('../data'); tries('./b/../c')\n\
         tries('a/of_directory', dir_fd=os.open('..', os.O_RDONLY)); tries('of_nothing', dir_fd=999)\n\
         os.chdir('/'); tries('no_such_file')"
    );
    let (out, _) = recorded(&["/usr/bin/python3", "-I", "-c", &script]);
    let result = |path: String| out.opens.iter().find(|open| open.path == path).map(|open| open.result.signum());
    for (path, wanted) in [("/a/none", -1), ("/a/b/../c", -1), ("/a/of_directory", -1)] {
        assert_eq!(result(format!("{place}{path}")), Some(wanted), "{path}");
    }
    // Where the file system is mounted in several places, what climbs stays as it is.
    let device = std::fs::metadata(directory.path()).unwrap().dev();
    let device = format!(" {}:{} ", nix::libc::major(device), nix::libc::minor(device));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_once = mounts.lines().filter(|line| line.contains(&device)).count() == 1;
    for (path, given) in [("/data", "../data"), ("", "..")] {
        let shown = if is_once { format!("{place}{path}") } else { given.to_owned() };
        assert_eq!(result(shown), Some(1), "{given}");
    }
    assert_eq!(result("/no_such_file".to_owned()), Some(-1));
    // There is no such directory.
    assert_eq!(result("of_nothing".to_owned()), Some(-1));
}

#[test]
fn pages_that_are_not_cached_are_seen_entering_the_page_cache() {
    if !root() {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("cold");
    std::fs::write(&path, vec![7u8; 1 << 20]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: fadvise takes a descriptor and integers. The file is this test's own.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    let (out, _) = recorded(&["/bin/cat", path.to_str().unwrap()]);
    let named = out.files.iter().find(|one| one.path == path.to_str().unwrap()).unwrap();
    let pages: u64 = out.page_cache.iter().filter(|row| row.file() == named.file()).map(|row| row.pages.0).sum();
    assert_eq!(pages, 256);
    assert!(out.page_cache.iter().filter(|row| row.file() == named.file()).all(|row| row.asker == Asker::Read));
    // A request that had to wait is issued by a thread of the kernel: those of the device that the tree reads count.
    let reads = || out.block_io.iter().filter(|io| io.read);
    let dev = reads().find(|io| io.in_tree).expect("the target read from a device").dev;
    let bytes: u64 = reads().filter(|io| io.dev == dev).map(|io| io.bytes.0).sum();
    assert!(bytes >= 1 << 20, "block layer read {bytes}");
    assert!(out.faults.iter().all(|fault| fault.kind == FaultKind::Minor || fault.duration.is_some()));
}

#[test]
fn every_fault_of_a_set_uid_program_is_recorded() {
    if !root() {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let copy = directory.path().join("python-set-uid");
    copy_program("/usr/bin/python3", &copy);
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let name = copy.to_str().unwrap();
    let mut recorder = Recorder::load(Options::default()).unwrap();
    let script = format!("{FAULT_HEAVY}\nimport time; time.sleep(0.3)\n{FAULT_HEAVY}");
    let (child, release) = held(&[
        "/usr/bin/setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        name,
        "-S",
        "-c",
        &script,
    ]);
    recorder.attach_tree(child.as_raw()).unwrap();
    nix::unistd::write(&release, b"x").unwrap();
    while nix::sys::wait::waitpid(child, Some(nix::sys::wait::WaitPidFlag::WNOHANG)).unwrap()
        == nix::sys::wait::WaitStatus::StillAlive
    {
        recorder.drain().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let out = decode(&recorder.finish().unwrap());
    let exec = out.execs.iter().find(|exec| exec.filename == name).expect("the program was executed");
    let counted: u64 =
        out.exits.iter().map(|exit| exit.min_flt + exit.maj_flt).sum::<u64>() - exec.min_flt - exec.maj_flt;
    let seen = out.faults.iter().filter(|fault| fault.ts >= exec.ts).count() as u64;
    println!("set-uid: recorded {seen}, the kernel counted {counted}");
    assert!(counted > 40_000 && seen.abs_diff(counted) * 1000 <= counted, "{seen} against {counted}");
}

#[test]
fn a_file_with_several_links_is_named_by_the_one_that_was_opened() {
    if !root() {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (hidden, used) = (directory.path().join("hidden"), directory.path().join("used"));
    std::fs::write(&hidden, vec![7u8; 65_536]).unwrap();
    std::fs::hard_link(&hidden, &used).unwrap();
    // The other link is the inode's latest directory entry, which is what the page cache can tell.
    std::fs::metadata(&used).and_then(|_| std::fs::metadata(&hidden)).unwrap();
    let file = std::fs::File::open(&hidden).unwrap();
    file.sync_all().unwrap();
    // SAFETY: fadvise takes a descriptor and integers. The file is this test's own.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    let (out, _) = recorded(&["/bin/cat", used.to_str().unwrap()]);
    let names: Vec<&str> =
        out.files.iter().map(|file| file.path.as_str()).filter(|path| path.starts_with("/var/tmp/")).collect();
    assert_eq!(names, [used.to_str().unwrap()]);
}

#[test]
fn faults_of_a_process_are_timed_and_not_recorded() {
    if !root() {
        return;
    }
    const TOUCHES: &str = "
import mmap, time
m = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(0, 8 << 20, 4096): m[i] = 1
time.sleep(60)
";
    let walks = slowpath_capture::StackEvents { faults: true, waits: true, memory_calls: true };
    let options = Options { memory_calls: true, waits: true, ..Options::default() };
    for options in [options.clone(), Options { stacks: walks, ..options }] {
        let walks = options.walks_stacks();
        let mut recorder = Recorder::load(options).unwrap();
        let (child, release) = held(&["/usr/bin/python3", "-c", TOUCHES]);
        let clock = recorder.time_faults(child.as_raw().unsigned_abs()).unwrap();
        let before = clock.read().unwrap();
        nix::unistd::write(&release, b"x").unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(20);
        let timed = loop {
            let timed = clock.read().unwrap().since(before);
            if timed.faults >= 2048 || std::time::Instant::now() > until {
                break timed;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        drop(clock);
        // Nothing is followed: tables can still be made beforehand.
        assert!(!walks || recorder.register_module(FileKey { dev: 1, ino: 2 }, None).is_ok());
        nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
        nix::sys::wait::waitpid(child, None).unwrap();
        let out = decode(&recorder.finish().unwrap());
        println!("{} faults, {} ns each", timed.faults, timed.time.0 / timed.faults.max(1));
        assert!(timed.faults >= 2048 && timed.time.0 >= timed.faults * 50, "{timed:?}");
        assert_eq!((out.faults.len(), out.execs.len(), out.exits.len()), (0, 0, 0));
        assert_eq!((out.mappings.len(), out.memory_calls.len(), out.off_cpu.len()), (0, 0, 0));
    }
}

/// Threads that run for a moment, one after the other. All that is kept of a thread is made while it runs.
const SHORT_THREADS: &str = "
import threading
def work(): sum(range(2000))
for i in range(3000):
    thread = threading.Thread(target=work)
    thread.start(); thread.join()
";

/// A sample can interrupt the kernel where it keeps things for a thread: nothing can be made for that thread then.
#[test]
fn each_sample_of_a_short_thread_has_its_stack() {
    if !root() {
        return;
    }
    let stacks = StackEvents { faults: true, waits: true, ..Default::default() };
    let options = Options { stacks, waits: true, cpu_hertz: Some(20_000), ..Options::default() };
    let (out, _) = recorded_with(options, &["/usr/bin/python3", "-S", "-c", SHORT_THREADS]);
    let threads: BTreeSet<_> = out.cpu_samples.iter().map(|sample| sample.tid).collect();
    println!("{} samples of {} threads", out.cpu_samples.len(), threads.len());
    assert!(threads.len() > 500, "{}", threads.len());
}

/// The kernel checks every program before a recording begins: the user waits for it, and so does each of our tests.
#[test]
fn no_program_costs_the_kernel_many_instructions_to_check() {
    if !root() {
        return;
    }
    let stacks = StackEvents { faults: true, waits: true, memory_calls: true };
    let options =
        Options { stacks, waits: true, files: true, memory_calls: true, cpu_hertz: Some(99), ..Options::default() };
    let recorder = Recorder::load(options).unwrap();
    let held = std::fs::read_dir("/proc/self/fdinfo").unwrap().filter_map(|entry| {
        let text = std::fs::read_to_string(entry.ok()?.path()).ok()?;
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        Some((number("prog_id:")?, number("verified_insns:")?))
    });
    let checked: BTreeMap<u64, u64> = held.collect();
    drop(recorder);
    if checked.is_empty() {
        return println!("skipped: this kernel does not say what it checked of a program (before 5.16)");
    }
    println!("{} instructions in {} programs", checked.values().sum::<u64>(), checked.len());
    // The dearest takes 16,000. The walk of stacks took 185,000, eight times, where the compiler had made branches of a loop without any.
    let dear: Vec<_> = checked.iter().filter(|(_, instructions)| **instructions > 40_000).collect();
    assert!(dear.is_empty(), "{dear:?}");
}

/// Calls of 32-bit programs have other numbers: what is `mmap` for others is `link` there.
#[test]
#[cfg(target_arch = "x86_64")]
fn system_calls_of_32_bit_programs_are_not_taken_for_others() {
    if !root() {
        return;
    }
    // push rbx; mov eax, 9; xor ebx, ebx; xor ecx, ecx; int 0x80; pop rbx; ret
    let script = r"
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex('53b80900000031db31c9cd805bc3'))
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
assert call() == -14
assert ctypes.CDLL(None).syscall(9, 0, 0, 0, 0, 0, 0) == -1
";
    let options = Options { memory_calls: true, ..Options::default() };
    let (out, _) = recorded_with(options, &["/usr/bin/python3", "-c", script]);
    let errors: Vec<i32> = out.memory_calls.iter().map(|call| call.result).filter(|error| *error != 0).collect();
    assert!(errors.contains(&-22) && !errors.contains(&-14), "{errors:?}");
}
