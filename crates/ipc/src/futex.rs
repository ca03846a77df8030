//! The futex calls that transports and the engine use, on words in shared memory (futex(2)).

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Words are in memory that processes share.
const SHARED: Flags = Flags::empty();
/// Longer than any process lives.
const FOREVER: Timespec = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };

/// Waits until `word` is no longer `value`, or until the time is over (`Ok(false)`).
#[inline]
pub(crate) fn wait(word: &AtomicU32, value: u32, limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit.map(|limit| Timespec::try_from(limit).unwrap_or(FOREVER));
    loop {
        if word.load(Ordering::Acquire) != value {
            return Ok(true);
        }
        match futex::wait(word, SHARED, value, limit.as_ref()) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::TIMEDOUT) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Wakes up to `count` waiters.
#[inline]
pub(crate) fn wake(word: &AtomicU32, count: u32) -> io::Result<()> {
    Ok(futex::wake(word, SHARED, count).map(drop)?)
}

fn thread() -> u32 {
    // SAFETY: no arguments.
    let tid = unsafe { libc::gettid() };
    tid.unsigned_abs()
}

/// Takes a lock with priority inheritance: whoever holds it gets the caller's priority while the caller waits.
pub(crate) fn lock_pi(word: &AtomicU32) -> io::Result<()> {
    if word.compare_exchange(0, thread(), Ordering::Acquire, Ordering::Relaxed).is_ok() {
        return Ok(());
    }
    loop {
        match futex::lock_pi(word, SHARED, None) {
            Ok(()) => return Ok(()),
            // AGAIN: the owner is about to exit; its death turns the next try into another error.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Gives such a lock back; the first waiter owns it then.
pub(crate) fn unlock_pi(word: &AtomicU32) -> io::Result<()> {
    if word.compare_exchange(thread(), 0, Ordering::Release, Ordering::Relaxed).is_ok() {
        return Ok(());
    }
    Ok(futex::unlock_pi(word, SHARED)?)
}
