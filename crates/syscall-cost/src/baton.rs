//! Hands work to a thread and takes its result, so that one of the two runs: a futex, and no other system call.

use crate::workload::{Bench, Workload};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nothing is asked of the thread.
const IDLE: u32 = 0;
/// Something is.
const ORDERED: u32 = 1;
/// It may end.
const DISMISSED: u32 = 2;

/// The burst that a thread is asked for, and what it took.
pub(crate) struct Baton {
    turn: AtomicU32,
    workload: AtomicU32,
    steps: AtomicU64,
    nanos: AtomicU64,
    failed: AtomicU64,
}

/// A burst that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    /// CPU time of the thread.
    pub nanos: u64,
    /// Calls that failed.
    pub failed: u64,
}

impl Baton {
    /// For a thread that has something to do before its first burst.
    pub(crate) fn begun() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            turn: AtomicU32::new(ORDERED),
            workload: AtomicU32::new(0),
            steps: zero(),
            nanos: zero(),
            failed: zero(),
        }
    }

    /// Asks the thread for a burst and waits for it. `None`: it did not come.
    pub(crate) fn ask(&self, workload: Workload, steps: u64, patience: Duration) -> Option<Burst> {
        self.workload.store(workload as u32, Ordering::Relaxed);
        self.steps.store(steps, Ordering::Relaxed);
        self.turn.store(ORDERED, Ordering::Release);
        wake(&self.turn);
        self.done(patience)?;
        Some(Burst { nanos: self.nanos.load(Ordering::Relaxed), failed: self.failed.load(Ordering::Relaxed) })
    }

    /// Waits until the thread has done what it was asked for. `None`: it has not.
    pub(crate) fn done(&self, patience: Duration) -> Option<()> {
        let began = Instant::now();
        while self.turn.load(Ordering::Acquire) == ORDERED {
            wait(&self.turn, ORDERED, Some(patience.checked_sub(began.elapsed())?));
        }
        Some(())
    }

    /// Lets the thread end. Never asked of one with a filter, which may not let it.
    pub(crate) fn dismiss(&self) {
        self.turn.store(DISMISSED, Ordering::Release);
        wake(&self.turn);
    }

    /// The thread's part: gives back and does what it is asked for until it is dismissed, and allocates nothing.
    pub(crate) fn serve(&self, bench: &Bench) {
        loop {
            self.turn.store(IDLE, Ordering::Release);
            wake(&self.turn);
            while self.turn.load(Ordering::Acquire) == IDLE {
                wait(&self.turn, IDLE, None);
            }
            if self.turn.load(Ordering::Acquire) == DISMISSED {
                return;
            }
            let wanted = self.workload.load(Ordering::Relaxed);
            let steps = self.steps.load(Ordering::Relaxed);
            let Some(workload) = Workload::ALL.into_iter().find(|one| *one as u32 == wanted) else { continue };
            // What the other thread left in the caches and predictors is not the burst's.
            let mut failed = bench.burst(workload, steps / 16);
            let began = cpu_time();
            failed += bench.burst(workload, steps);
            let ended = cpu_time();
            self.nanos.store(ended.saturating_sub(began), Ordering::Relaxed);
            self.failed.store(failed, Ordering::Relaxed);
        }
    }
}

/// CPU time of the calling thread in ns; 0 where the clock fails, which the probe has ruled out.
fn cpu_time() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a structure of ours.
    match unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) } {
        0 => now.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(now.tv_nsec.unsigned_abs()),
        _ => 0,
    }
}

fn wake(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel looks up the address of a word that lives.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
}

fn wait(word: &AtomicU32, while_it_is: u32, patience: Option<Duration>) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let limit = patience.map(|time| libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads a word and a structure that live; whoever is woken looks at the word again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, while_it_is, limit) };
}

/// Everything that a thread with a filter does between its bursts, once: `None` where one of it fails.
pub(crate) fn rehearse() -> io::Result<()> {
    let word = AtomicU32::new(IDLE);
    let asked = |operation: i32, value: u32, expected: &[i32]| {
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        let nothing = std::ptr::null::<libc::timespec>();
        // SAFETY: the word lives; the wait ends at once, for the word has another value.
        let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, nothing) };
        let error = io::Error::last_os_error();
        if result == 0 || error.raw_os_error().is_some_and(|error| expected.contains(&error)) {
            Ok(())
        } else {
            Err(error)
        }
    };
    asked(libc::FUTEX_WAKE, 1, &[])?;
    asked(libc::FUTEX_WAIT, ORDERED, &[libc::EAGAIN])?;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a structure of ours.
    match unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
