//! How each bubble is made. The server, a forked process, triggers it within one call, so that every run has exactly one.
//!
//! What the server and the disturbing thread share is a page of memory and an eventfd, made before the fork. The server is
//! SCHED_FIFO; only one that is to be throttled is not, for the quota is of normal threads.

use slowpath_ipc::latency::work::burn;
use slowpath_ipc::scheduling::{become_fifo, now_ns, pin, set_nice, thread};
use slowpath_ipc::trace::Instance;
use slowpath_ipc::trace::explain::{Cause, Explanation};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Of the server, so that other programs of a busy machine do not come between.
pub const PRIORITY: i32 = 50;
/// How long a bubble is.
const BUBBLE: Duration = Duration::from_millis(5);
/// What a server that is disturbed while it computes would take alone, in ns.
const SERVICE_NS: u64 = 800_000;

/// A kind of bubble.
pub struct Injection {
    /// For the row.
    pub name: &'static str,
    /// What it is to be called.
    pub cause: Cause,
    pub deadline_us: u64,
    /// What the server does in each call.
    pub work: fn(),
    /// What disturbs it, in a thread of its own.
    disturb: Option<fn(client_cpu: usize, server_cpu: usize)>,
    /// Whether it has to say that this thread did it.
    names_thread: bool,
    needs_group: bool,
}

pub static HOG: Injection = Injection {
    name: "SCHED_FIFO 99 hog on the server's CPU",
    cause: Cause::CpuBusy,
    deadline_us: 2500,
    work: || {
        if is_disturbed() {
            signal()
        }
    },
    disturb: Some(|_, server| hog(99, server)),
    names_thread: true,
    needs_group: false,
};
pub static OUTRANKED_HOG: Injection = Injection {
    name: "SCHED_FIFO 98 hog, which the caller outranks",
    cause: Cause::NoInheritance,
    disturb: Some(|_, server| hog(98, server)),
    ..HOG
};
pub static INTERRUPTS: Injection = Injection {
    name: "storm of timer interrupts",
    cause: Cause::Interrupt,
    work: || {
        if is_disturbed() {
            storm();
            compute(SERVICE_NS);
        }
    },
    disturb: None,
    names_thread: false,
    ..HOG
};
pub static MIGRATION: Injection = Injection {
    name: "forced migration, back and forth",
    cause: Cause::Migration,
    work: || {
        if is_disturbed() {
            word(SERVER).store(thread(), Ordering::Release);
            signal();
            compute(SERVICE_NS);
            word(DONE).store(1, Ordering::Release);
        }
    },
    disturb: Some(move_back_and_forth),
    names_thread: false,
    ..HOG
};
pub static LOCK: Injection = Injection {
    name: "lock held by another thread",
    cause: Cause::LockHeld,
    work: || {
        if is_disturbed() {
            signal();
            futex(libc::FUTEX_WAIT, 1);
        }
    },
    disturb: Some(|client, _| {
        prepare_thread(client, 60);
        while wait_for_signal() {
            std::thread::sleep(BUBBLE);
            word(LOCKED).store(0, Ordering::Release);
            futex(libc::FUTEX_WAKE, 1);
        }
    }),
    ..HOG
};
pub static THROTTLE: Injection = Injection {
    name: "throttled by cpu.max (1 ms of each 100)",
    cause: Cause::CpuQuota,
    deadline_us: 100_000,
    work: || {
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            become_normal();
            set_nice(-20).unwrap();
            fs::write(group().join("cgroup.procs"), std::process::id().to_string()).unwrap();
        }
        if number == word(DISTURBED).load(Ordering::Relaxed) {
            burn(4_000_000);
        }
    },
    disturb: None,
    names_thread: false,
    needs_group: true,
};
pub static SLEEP: Injection = Injection {
    name: "none: the server sleeps",
    cause: Cause::Unexplained,
    work: || {
        if is_disturbed() {
            std::thread::sleep(BUBBLE);
        }
    },
    disturb: None,
    names_thread: false,
    ..HOG
};
pub static COMPUTATION: Injection = Injection {
    name: "none: the server computes",
    work: || {
        if is_disturbed() {
            burn(5_000_000)
        }
    },
    ..SLEEP
};

impl Injection {
    /// Whether it can be made here.
    pub fn possible(&self, cpus: &[usize]) -> Result<(), String> {
        if cpus.len() < 2 {
            return Err("it needs two CPUs".to_owned());
        }
        // In a thread of its own, which ends with it.
        let fifo = std::thread::spawn(|| become_fifo(PRIORITY)).join().unwrap();
        fifo.map_err(|error| format!("SCHED_FIFO: {error}"))?;
        Instance::start().map(drop).map_err(|error| error.to_string())?;
        if self.needs_group && quota().is_none() {
            return Err("no cpu controller of cgroups at its usual place".to_owned());
        }
        Ok(())
    }

    /// Whether an explanation names it.
    pub fn is_named_in(&self, explained: &Explanation) -> bool {
        let disturber = word(DISTURBER).load(Ordering::Acquire);
        let named = explained.who.as_ref().map(|who| who.tid);
        let covered: f64 = explained.timeline.iter().map(|part| part.us).sum();
        explained.cause == self.cause
            && (!self.names_thread || named == Some(disturber))
            && (covered - explained.took_us).abs() < 1.0
    }

    /// Everything for one run, until what is returned is dropped.
    pub fn prepare(&self, client: usize, server: usize, disturbed: u32) -> Bubble {
        CALLS.store(0, Ordering::Relaxed);
        for index in 0..WORDS {
            word(index).store(0, Ordering::Relaxed);
        }
        word(DISTURBED).store(disturbed, Ordering::Relaxed);
        word(LOCKED).store(1, Ordering::Relaxed);
        // SAFETY: no pointers.
        SIGNAL.store(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }, Ordering::Relaxed);
        // The server has what is found here from the fork on: found in the call that is disturbed, it would be found too small.
        std::thread::spawn(move || pin(server).map(|()| compute(SERVICE_NS))).join().unwrap().unwrap();
        if std::ptr::eq(self, &INTERRUPTS) {
            timers(server);
        }
        let made = self.needs_group.then(Group::make);
        let disturbing = self.disturb.map(|disturb| std::thread::spawn(move || disturb(client, server)));
        while disturbing.is_some() && word(DISTURBER).load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        Bubble { disturbing, _group: made }
    }
}

/// What one run has.
pub struct Bubble {
    disturbing: Option<JoinHandle<()>>,
    _group: Option<Group>,
}

impl Drop for Bubble {
    fn drop(&mut self) {
        word(ENDED).store(1, Ordering::Release);
        signal();
        if let Some(thread) = self.disturbing.take() {
            thread.join().unwrap();
        }
        let mut descriptors: Vec<i32> = std::mem::take(&mut TIMERS.lock().unwrap_or_else(PoisonError::into_inner));
        descriptors.push(SIGNAL.swap(-1, Ordering::Relaxed));
        for descriptor in descriptors {
            // SAFETY: ours, and not used any more.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// One case at a time: they share what is static, and the CPUs.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls that this server had.
static CALLS: AtomicU32 = AtomicU32::new(0);
static SIGNAL: AtomicI32 = AtomicI32::new(-1);
/// Performance events whose timers interrupt a CPU.
static TIMERS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Words that all processes share.
const SERVER: usize = 0;
const DISTURBER: usize = 1;
const DISTURBED: usize = 2;
const LOCKED: usize = 3;
const DONE: usize = 4;
const ENDED: usize = 5;
const WORDS: usize = 6;

fn word(index: usize) -> &'static AtomicU32 {
    static SHARED: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
    static MAKING: Mutex<()> = Mutex::new(());
    if SHARED.load(Ordering::Acquire).is_null() {
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if SHARED.load(Ordering::Acquire).is_null() {
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            // SAFETY: a new anonymous mapping, which stays for good.
            let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0) };
            assert_ne!(page, libc::MAP_FAILED);
            SHARED.store(page.cast(), Ordering::Release);
        }
    }
    // SAFETY: the page is alive for good, aligned and large enough.
    unsafe { &*SHARED.load(Ordering::Acquire).add(index) }
}

/// Of the server, in each call: whether this is the one.
fn is_disturbed() -> bool {
    CALLS.fetch_add(1, Ordering::Relaxed) == word(DISTURBED).load(Ordering::Relaxed)
}

fn become_normal() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is alive; 0 is the calling thread.
    assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameter) }, 0);
}

/// Wakes the disturbing thread.
fn signal() {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight bytes that are alive.
    unsafe { libc::write(SIGNAL.load(Ordering::Relaxed), one.as_ptr().cast(), one.len()) };
}

/// Of the disturbing thread: false at the end.
fn wait_for_signal() -> bool {
    let mut number = [0u8; 8];
    // SAFETY: eight bytes that are alive.
    unsafe { libc::read(SIGNAL.load(Ordering::Relaxed), number.as_mut_ptr().cast(), number.len()) };
    word(ENDED).load(Ordering::Acquire) == 0
}

fn prepare_thread(cpu: usize, priority: i32) {
    pin(cpu).unwrap();
    become_fifo(priority).unwrap();
    word(DISTURBER).store(thread(), Ordering::Release);
}

fn hog(priority: i32, cpu: usize) {
    prepare_thread(cpu, priority);
    while wait_for_signal() {
        burn(u64::try_from(BUBBLE.as_nanos()).unwrap());
    }
}

fn move_back_and_forth(client: usize, server: usize) {
    prepare_thread(client, 99);
    let set = |cpu: usize| {
        let mut set = nix::sched::CpuSet::new();
        set.set(cpu).unwrap();
        set
    };
    let (there, back) = (set(client), set(server));
    while wait_for_signal() {
        let who = nix::unistd::Pid::from_raw(word(SERVER).load(Ordering::Acquire).cast_signed());
        let until = now_ns() + 20_000_000;
        while word(DONE).load(Ordering::Acquire) == 0 && now_ns() < until {
            // One that has ended meanwhile is moved no more.
            let _ = nix::sched::sched_setaffinity(who, &there);
            let _ = nix::sched::sched_setaffinity(who, &back);
        }
    }
}

/// Computes as long as some time would take alone: a number of steps, not a time.
fn compute(ns: u64) {
    static STEPS: AtomicU32 = AtomicU32::new(0);
    let run = |steps: u32| {
        (0..steps).for_each(|step| {
            std::hint::black_box(step);
        })
    };
    if STEPS.load(Ordering::Relaxed) == 0 {
        // The fastest of some: what disturbs makes it slower.
        let fastest = (0..20).map(|_| {
            let from = now_ns();
            run(100_000);
            now_ns() - from
        });
        let fastest = fastest.min().unwrap().max(1);
        STEPS.store(u32::try_from(100_000 * ns / fastest).unwrap(), Ordering::Relaxed);
    }
    run(STEPS.load(Ordering::Relaxed));
}

fn futex(operation: i32, value: u32) {
    let lock = word(LOCKED);
    while operation == libc::FUTEX_WAIT && lock.load(Ordering::Acquire) == value {
        // SAFETY: the word is alive; no time.
        unsafe { libc::syscall(libc::SYS_futex, lock.as_ptr(), operation, value, std::ptr::null::<libc::timespec>()) };
    }
    if operation == libc::FUTEX_WAKE {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_futex, lock.as_ptr(), operation, value) };
    }
}

/// How often each timer of a storm expires, in ns. All have to be served within it: after an interrupt that takes longer than timers
/// leave, the kernel delays the next one by as much, and half of the CPU is free (`hrtimer_interrupt`, kernel/time/hrtimer.c).
const PERIOD_NS: u64 = 20_000;
/// Expiries of each timer in a storm: after them it is off by itself, whatever became of who set it.
const EXPIRIES: u64 = 300;
/// Timers at least, so that an interrupt has work to do: what a virtual machine pays before and after it is in no trace. At most: where
/// interrupts are cheap, more are needed.
const FEWEST_TIMERS: usize = 16;
const MOST_TIMERS: usize = 128;

/// A group of software events on a CPU, each of which has a timer when the group is on: as many as take five sixths of it, found by
/// trying: of an interrupt's cost the trace may show less than two thirds, and it has to show half of the time. Where none take as
/// much, those that take most.
fn timers(cpu: usize) {
    let mut open = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut most_slowed, mut best) = (0.0, FEWEST_TIMERS);
    while open.len() < MOST_TIMERS {
        let mut attributes = [0u8; 64];
        // perf_event_open(2): type PERF_TYPE_SOFTWARE, size, config PERF_COUNT_SW_CPU_CLOCK, sample_period, bit `disabled`.
        attributes[0..4].copy_from_slice(&1u32.to_ne_bytes());
        attributes[4..8].copy_from_slice(&64u32.to_ne_bytes());
        attributes[16..24].copy_from_slice(&PERIOD_NS.to_ne_bytes());
        attributes[40] = 1;
        let (on, leader) = (i32::try_from(cpu).unwrap(), open.first().copied().unwrap_or(-1));
        // SAFETY: attributes of the size that they say.
        let event = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), -1, on, leader, 8) };
        assert!(event >= 0, "perf_event_open: {}", std::io::Error::last_os_error());
        open.push(i32::try_from(event).unwrap());
        if open.len() < FEWEST_TIMERS || !open.len().is_multiple_of(4) {
            continue;
        }
        // The least of some: what else disturbs makes it slower too.
        match (0..3).map(|_| slowed(cpu, &open)).fold(f64::INFINITY, f64::min) {
            6.0.. => return,
            factor if factor > most_slowed => (most_slowed, best) = (factor, open.len()),
            _ => {}
        }
    }
    for event in open.drain(best..) {
        // SAFETY: ours, and not used any more.
        unsafe { libc::close(event) };
    }
}

/// By which factor all events together slow a computation on their CPU.
fn slowed(cpu: usize, events: &[i32]) -> f64 {
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            pin(cpu).unwrap();
            become_fifo(98).unwrap();
            let from = now_ns();
            switch_on(events);
            compute(SERVICE_NS);
            let took = now_ns() - from;
            // What is left of the storm would be added to the next one's.
            std::thread::sleep(Duration::from_nanos(EXPIRIES * PERIOD_NS));
            took as f64 / SERVICE_NS as f64
        });
        measured.join().unwrap()
    })
}

/// `PERF_EVENT_IOC_REFRESH`: on for that many expiries. The leader last: the others go on with it, all at once.
fn switch_on(events: &[i32]) {
    for event in events.iter().rev() {
        // SAFETY: no pointers.
        unsafe { libc::ioctl(*event, 0x2402 as _, EXPIRIES) };
    }
}

fn storm() {
    switch_on(&TIMERS.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Where groups with a quota can be made: their directory, and what to write for 1 ms of each 100, of which no other program takes a part.
fn quota() -> Option<(&'static Path, &'static [(&'static str, &'static str)])> {
    let (first, second) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
    if first.join("cpu.cfs_quota_us").exists() {
        return Some((
            first,
            &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "1000"), ("cpu.shares", "262144")],
        ));
    }
    let enabled = fs::read_to_string(second.join("cgroup.subtree_control")).unwrap_or_default();
    enabled
        .split_whitespace()
        .any(|one| one == "cpu")
        .then_some((second, &[("cpu.max", "1000 100000"), ("cpu.weight", "10000")]))
}

static GROUP: Mutex<PathBuf> = Mutex::new(PathBuf::new());

/// Of the server, whose parent made it.
fn group() -> PathBuf {
    GROUP.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A cpu cgroup with a quota, which goes with the run.
struct Group;

impl Group {
    fn make() -> Self {
        let (place, limits) = quota().unwrap();
        let path = place.join(format!("slowpath-bubbles-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        for (file, text) in limits {
            fs::write(path.join(file), text).unwrap();
        }
        *GROUP.lock().unwrap_or_else(PoisonError::into_inner) = path;
        Self
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let path = group();
        // The server was ended and reaped; its group is empty a moment later.
        for _ in 0..500 {
            match fs::remove_dir(&path) {
                Ok(()) => return,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        panic!("{} stays", path.display());
    }
}
