//! Workers in their sandboxes, attacked from inside and from the side.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use slowpath_process::{Credentials, Duty, MOST_BYTES, NOBODY, Sandbox, Worker, WorkerError, WritablePlace};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Many times what anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn nobody() -> Credentials {
    Credentials { uid: NOBODY, gid: NOBODY, groups: Vec::new() }
}

fn root() -> Credentials {
    Credentials {
        uid: 0,
        gid: 0,
        groups: nix::unistd::getgroups().unwrap().into_iter().map(|one| one.as_raw()).collect(),
    }
}

fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        println!("skipped: only root can become another user");
    }
    is_root
}

/// What work in such a sandbox returns.
fn text(sandbox: &Sandbox, kept: &[RawFd], work: impl FnOnce() -> String) -> Result<String, WorkerError> {
    let bytes = Worker::start(sandbox, kept, || work().into_bytes())?.wait(PATIENCE, || true)?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn fails<T>(result: Result<T, WorkerError>) -> WorkerError {
    result.err().unwrap()
}

#[test]
fn of_the_parents_descriptors_a_worker_has_those_that_are_listed_and_no_shared_memory() {
    if !is_root() {
        return;
    }
    // Stand-ins for the lab's image, a channel to a launcher, and a ring that is mapped.
    let secret = tempfile::tempfile().unwrap();
    let channel = UnixStream::pair().unwrap();
    // SAFETY: a new shared mapping of a whole file of that size.
    let ring = unsafe {
        secret.set_len(4096).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, secret.as_raw_fd(), 0)
    };
    assert_ne!(ring, libc::MAP_FAILED);
    let listed = File::open("/dev/zero").unwrap();
    let look = || {
        let mut names: Vec<String> = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| Some(fs::read_link(entry.ok()?.path()).ok()?.display().to_string()))
            // Standard output and error are those of the test, and the directory is open while it is read.
            .collect();
        names.sort();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let shared = maps.lines().filter(|line| line.contains("s 0")).count();
        format!("{shared} {}", names.join(" "))
    };
    let reply = text(&Sandbox::new(nobody(), Duty::Read).silent(), &[listed.as_raw_fd()], look).unwrap();
    let own = format!("/proc/{}/fd", "");
    let words: Vec<&str> = reply.split(' ').filter(|word| !word.starts_with(own.trim_end_matches("/fd"))).collect();
    let [shared, names @ ..] = words.as_slice() else { panic!("{reply}") };
    let (pipes, others): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.starts_with("pipe:"));
    assert_eq!((*shared, pipes.len()), ("0", 1), "{reply}");
    assert_eq!(others, ["/dev/null", "/dev/null", "/dev/null", "/dev/zero"], "{reply}");
    drop(channel);
    // SAFETY: mapped above, and used by nobody.
    unsafe { libc::munmap(ring, 4096) };
}

/// Leaves a file behind when it is dropped.
struct Marker(std::path::PathBuf);

impl Drop for Marker {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, b"the parent's destructor ran");
    }
}

#[test]
fn a_worker_that_panics_runs_no_destructor_of_its_parent_and_says_why() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("marker");
    let marker = Marker(path.clone());
    let me = Credentials {
        uid: geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
        groups: nix::unistd::getgroups().unwrap().into_iter().map(|one| one.as_raw()).collect(),
    };
    // One that may write, so that only unwinding decides.
    let worker = Worker::start(&Sandbox::new(me, Duty::Write), &[], || {
        let _borrowed = &marker;
        panic!("a stranger's file")
    });
    let error = worker.unwrap().wait(PATIENCE, || true).unwrap_err();
    assert!(matches!(&error, WorkerError::Crashed(why) if why.starts_with("a stranger's file")), "{error}");
    assert!(!path.exists());
    drop(marker);
    assert!(path.exists(), "the marker shows nothing");
}

#[test]
fn an_endless_result_is_cut_off() {
    let sandbox = Sandbox::new(root_or_me(), Duty::Parse);
    let endless = Worker::start(&sandbox, &[], || vec![b'['; MOST_BYTES + 1]).unwrap();
    let pid = endless.pid();
    let error = fails(endless.wait(PATIENCE, || true));
    assert!(matches!(error, WorkerError::TooLarge), "{error}");
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

fn root_or_me() -> Credentials {
    if geteuid().is_root() { root() } else { me() }
}

fn me() -> Credentials {
    Credentials { uid: geteuid().as_raw(), gid: nix::unistd::getegid().as_raw(), groups: root().groups }
}

/// A worker of nobody that waits until it is ended.
fn idle(duty: Duty) -> Worker {
    Worker::start(&Sandbox::new(nobody(), duty).silent(), &[], || {
        std::thread::sleep(PATIENCE);
        Vec::new()
    })
    .unwrap()
}

fn pid(worker: &Worker) -> Pid {
    Pid::from_raw(worker.pid().cast_signed())
}

/// Waits until the worker has dropped its identity.
fn confined(worker: &Worker) {
    let began = Instant::now();
    let is_confined = || fs::read_to_string(format!("/proc/{}/status", worker.pid())).unwrap().contains("Seccomp:\t2");
    while !is_confined() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_worker_that_its_user_kills_is_noticed_with_the_signal() {
    if !is_root() {
        return;
    }
    let worker = idle(Duty::Parse);
    kill(pid(&worker), Signal::SIGKILL).unwrap();
    assert!(matches!(fails(worker.wait(PATIENCE, || true)), WorkerError::Killed(libc::SIGKILL)));
}

#[test]
fn a_worker_that_its_user_stops_is_continued_once_and_then_ended() {
    if !is_root() {
        return;
    }
    let worker = idle(Duty::Parse);
    let child = pid(&worker);
    let stopping = std::thread::spawn(move || {
        while kill(child, Signal::SIGSTOP).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let error = fails(worker.wait(PATIENCE, || true));
    assert!(matches!(error, WorkerError::Stopped(libc::SIGSTOP)), "{error}");
    stopping.join().unwrap();
    // Stopped a single time, it goes on.
    let (gate, opener) = UnixStream::pair().unwrap();
    let worker = Worker::start(&Sandbox::new(nobody(), Duty::Parse), &[gate.as_raw_fd()], || {
        let _ = (&gate).read(&mut [0]);
        vec![7]
    })
    .unwrap();
    kill(pid(&worker), Signal::SIGSTOP).unwrap();
    drop(gate);
    drop(opener);
    assert_eq!(worker.wait(PATIENCE, || true).unwrap(), [7]);
}

#[test]
fn who_waits_for_a_worker_can_give_up_and_does_at_the_limit() {
    if !is_root() {
        return;
    }
    let worker = idle(Duty::Parse);
    let child = pid(&worker);
    assert!(matches!(fails(worker.wait(PATIENCE, || false)), WorkerError::GivenUp));
    assert!(kill(child, None).is_err(), "it outlived the wait");
    let late = idle(Duty::Parse).wait(Duration::from_millis(30), || true);
    assert!(matches!(fails(late), WorkerError::Late(_)));
}

#[test]
fn a_worker_has_the_identity_no_capability_no_new_privileges_a_filter_and_no_cores() {
    if !is_root() {
        return;
    }
    let look = || fs::read_to_string("/proc/self/status").unwrap() + &fs::read_to_string("/proc/self/limits").unwrap();
    let status = text(&Sandbox::new(nobody(), Duty::Read).silent(), &[], look).unwrap();
    let line = |status: &str, key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let ids = "65534 65534 65534 65534";
    assert_eq!((line(&status, "Uid:").as_str(), line(&status, "Gid:").as_str()), (ids, ids));
    for (key, value) in
        [("CapPrm:", "0000000000000000"), ("CapInh:", "0000000000000000"), ("NoNewPrivs:", "1"), ("Seccomp:", "2")]
    {
        assert_eq!(line(&status, key), value, "{key}");
    }
    assert!(line(&status, "Max core file size").starts_with("0 0"), "{status}");
    assert!(!line(&status, "Max data size").contains("unlimited"), "{status}");
    // Root's own work reads everybody's files and has no other power.
    let status = text(&Sandbox::new(root(), Duty::Read).silent(), &[], look).unwrap();
    assert_eq!((line(&status, "Uid:").as_str(), line(&status, "CapPrm:").as_str()), ("0 0 0 0", "0000000000000004"));
    assert_eq!(line(&status, "CapEff:"), "0000000000000004");
}

#[test]
fn nobody_of_the_same_user_can_trace_a_worker_or_read_its_memory() {
    if !is_root() {
        return;
    }
    let worker = idle(Duty::Parse);
    confined(&worker);
    let child = worker.pid();
    let attack = || {
        // SAFETY: asks to trace; takes integers.
        let traced = unsafe { libc::ptrace(libc::PTRACE_SEIZE, child, 0, 0) };
        let error = Errno::last();
        format!("{traced} {error} {}", File::open(format!("/proc/{child}/mem")).is_ok())
    };
    // A process of the same user without any filter.
    let reply = text(&Sandbox::new(nobody(), Duty::Measure).silent(), &[], attack).unwrap();
    assert_eq!(reply, "-1 EPERM: Operation not permitted false");
}

/// What a system call answers in a worker: 0, an error, or minus the signal that it ended the worker by.
fn answer(sandbox: &Sandbox, call: impl FnOnce() -> i64) -> i64 {
    let worked = text(sandbox, &[], || {
        let result = call();
        if result < 0 { i64::from(Errno::last_raw()).to_string() } else { "0".to_owned() }
    });
    match worked {
        Ok(reply) => reply.parse().unwrap(),
        Err(WorkerError::Killed(signal)) => -i64::from(signal),
        Err(other) => panic!("{other}"),
    }
}

fn call(number: i64, arguments: [i64; 4]) -> i64 {
    let [a, b, c, d] = arguments;
    // SAFETY: calls with null for every address: whatever passes the filter fails in the kernel or does nothing to memory of ours.
    unsafe { libc::syscall(number, a, b, c, d) }
}

const KILLED: i64 = -(libc::SIGSYS as i64);
const EPERM: i64 = libc::EPERM as i64;
const ENOSYS: i64 = libc::ENOSYS as i64;

#[test]
fn what_only_an_attacker_calls_ends_a_worker_also_one_of_roots_and_is_refused_to_one_that_starts_programs() {
    let attacks = [
        libc::SYS_mount,
        libc::SYS_ptrace,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_process_vm_writev,
        libc::SYS_process_vm_readv,
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        libc::SYS_keyctl,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_setns,
        libc::SYS_unshare,
        libc::SYS_open_by_handle_at,
        libc::SYS_pidfd_getfd,
        libc::SYS_setresuid,
    ];
    for duty in [Duty::Parse, Duty::Read, Duty::Write, Duty::Browse] {
        let sandbox = Sandbox::new(root_or_me(), duty).silent();
        for number in attacks.into_iter().chain([libc::SYS_execve]) {
            assert_eq!(answer(&sandbox, || call(number, [0; 4])), KILLED, "{duty:?} {number}");
        }
    }
    let sandbox = Sandbox::new(root_or_me(), Duty::Run).silent();
    for number in attacks {
        assert_eq!(answer(&sandbox, || call(number, [0; 4])), EPERM, "{number}");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(answer(&sandbox, || call(number | 0x4000_0000, [0; 4])), ENOSYS, "x32 {number}");
        }
    }
    let namespaces = i64::from(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
    assert_eq!(answer(&sandbox, || call(libc::SYS_clone, [namespaces, 0, 0, 0])), EPERM);
    assert_eq!(answer(&sandbox, || call(libc::SYS_ioctl, [0, libc::TIOCSTI as i64, 0, 0])), EPERM);
}

#[test]
fn a_parser_opens_nothing_starts_nothing_signals_nobody_and_makes_no_code() {
    let parser = Sandbox::new(root_or_me(), Duty::Parse);
    let at = i64::from(libc::AT_FDCWD);
    assert_eq!(answer(&parser, || call(libc::SYS_openat, [at, 0, 0, 0])), EPERM);
    assert_eq!(answer(&parser, || call(libc::SYS_socket, [1, 1, 0, 0])), EPERM);
    assert_eq!(answer(&parser, || call(libc::SYS_clone, [0; 4])), EPERM);
    assert_eq!(answer(&parser, || call(libc::SYS_clone3, [0; 4])), ENOSYS);
    assert_eq!(answer(&parser, || call(libc::SYS_ioctl, [0, libc::TIOCSTI as i64, 0, 0])), EPERM);
    let parent = i64::from(std::process::id());
    assert_eq!(answer(&parser, || call(libc::SYS_kill, [parent, 0, 0, 0])), EPERM);
    let code = i64::from(libc::PROT_READ | libc::PROT_EXEC);
    assert_eq!(
        answer(&parser, || call(libc::SYS_mmap, [0, 4096, code, i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)])),
        EPERM
    );
    assert_eq!(answer(&parser, || call(9999, [0; 4])), ENOSYS);
}

#[test]
fn no_worker_has_the_kernel_signal_a_process_through_a_descriptor() {
    let (output, parent) = (1, i64::from(std::process::id()));
    let signals = [
        (libc::F_SETOWN, parent),
        // F_SETSIG, F_SETOWN_EX and F_NOTIFY of include/uapi: fcntl(2).
        (10, i64::from(libc::SIGKILL)),
        (15, 0),
        (1026, 0),
        (libc::F_SETLEASE, 0),
        (libc::F_SETFL, i64::from(libc::O_ASYNC | libc::O_NONBLOCK)),
    ];
    let plain = [(libc::F_GETFD, 0), (libc::F_SETFD, 0), (libc::F_GETFL, 0), (libc::F_SETFL, 0), (libc::F_DUPFD, 3)];
    for duty in [Duty::Parse, Duty::Read, Duty::Write, Duty::Browse] {
        let sandbox = Sandbox::new(root_or_me(), duty).silent();
        let fcntl = |command: i32, argument: i64| {
            answer(&sandbox, || call(libc::SYS_fcntl, [output, i64::from(command), argument, 0]))
        };
        for (command, argument) in signals {
            assert_eq!(fcntl(command, argument), EPERM, "{duty:?}: {command}");
        }
        for (command, argument) in plain {
            assert_eq!(fcntl(command, argument), 0, "{duty:?}: {command}");
        }
    }
}

#[test]
fn a_reader_reads_and_starts_threads_and_changes_no_file_even_as_root() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "content").unwrap();
    let reply = text(&Sandbox::new(root_or_me(), Duty::Read).silent(), &[], || {
        let read = fs::read_to_string(&file).unwrap();
        let thread = std::thread::spawn(|| 7).join().unwrap();
        let refused = [
            fs::write(&file, "other").is_err(),
            File::options().append(true).open(&file).is_err(),
            File::create(file.with_extension("new")).is_err(),
            fs::remove_file(&file).is_err(),
            fs::rename(&file, file.with_extension("moved")).is_err(),
            fs::create_dir(file.with_extension("d")).is_err(),
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o777)).is_err(),
            std::os::unix::fs::symlink("/", file.with_extension("link")).is_err(),
            std::process::Command::new("/bin/true").status().is_err(),
            UnixStream::pair().is_err(),
        ];
        format!("{read} {thread} {refused:?} {}", fs::read_dir(file.parent().unwrap()).unwrap().count())
    });
    assert_eq!(reply.unwrap(), format!("content 7 {:?} 1", [true; 10]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "content");
}

#[test]
fn a_writer_changes_files_in_its_place_and_nowhere_else_even_as_root() {
    // SAFETY: asks for a number.
    if unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) } < 1 {
        println!("skipped: this kernel has no Landlock");
        return;
    }
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let theirs = other.path().join("file");
    fs::write(&theirs, "theirs").unwrap();
    let sandbox =
        Sandbox::new(root_or_me(), Duty::Write).silent().writing_in([WritablePlace::Beneath(place.path().to_owned())]);
    let reply = text(&sandbox, &[], || {
        let (first, second) = (place.path().join("d/first"), place.path().join("d/second"));
        fs::create_dir(place.path().join("d")).unwrap();
        fs::write(&first, "mine").unwrap();
        fs::rename(&first, &second).unwrap();
        let refused = [
            fs::write(&theirs, "mine").is_err(),
            fs::write(other.path().join("new"), "mine").is_err(),
            fs::remove_file(&theirs).is_err(),
            fs::rename(&second, other.path().join("moved")).is_err(),
            fs::hard_link(&theirs, place.path().join("link")).is_err(),
        ];
        format!("{} {refused:?} {}", fs::read_to_string(second).unwrap(), fs::read_to_string(&theirs).unwrap())
    });
    assert_eq!(reply.unwrap(), format!("mine {:?} theirs", [true; 5]));
}

#[test]
fn a_worker_that_starts_programs_can_and_they_get_no_privilege() {
    if !is_root() {
        return;
    }
    let reply = text(&Sandbox::new(nobody(), Duty::Run).silent(), &[], || {
        let status = std::process::Command::new("/bin/cat").arg("/proc/self/status").output().unwrap().stdout;
        String::from_utf8(status).unwrap()
    });
    let reply = reply.unwrap();
    assert!(
        reply.contains("NoNewPrivs:\t1") && reply.contains("Seccomp:\t2") && reply.contains("Uid:\t65534\t65534"),
        "{reply}"
    );
}

#[test]
fn memory_without_end_ends_the_worker_alone() {
    let error = fails(text(&Sandbox::new(root_or_me(), Duty::Parse), &[], || {
        let mut blocks = Vec::new();
        loop {
            blocks.push(vec![1u8; 64 << 20]);
            if blocks.len() > 64 {
                return "4 GiB".to_owned();
            }
        }
    }));
    assert!(matches!(error, WorkerError::Killed(libc::SIGABRT)), "{error}");
}
