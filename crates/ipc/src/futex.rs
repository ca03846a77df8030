//! The futex calls that transports and the engine use, on words in shared memory (futex(2)).

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Waits until `word` is no longer `value`, or until the time is over (`Ok(false)`).
pub(crate) fn wait(word: &AtomicU32, value: u32, limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    loop {
        if word.load(Ordering::Acquire) != value {
            return Ok(true);
        }
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word is alive, and so is the time where there is one.
        let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, limit) };
        if result == 0 {
            continue;
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EAGAIN) => {}
            error if error.raw_os_error() == Some(libc::EINTR) => {}
            error if error.raw_os_error() == Some(libc::ETIMEDOUT) => return Ok(false),
            error => return Err(error),
        }
    }
}

/// Wakes up to `count` waiters.
pub(crate) fn wake(word: &AtomicU32, count: i32) -> io::Result<()> {
    // SAFETY: the word is alive; the call takes no other pointer.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
        // SAFETY: the word is alive; without a time the call waits for good.
        let result = unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_LOCK_PI, 0, std::ptr::null::<libc::timespec>())
        };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // EAGAIN: the owner is about to exit; its death turns the next try into another error.
        if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) {
            return Err(error);
        }
    }
}

/// Gives such a lock back; the first waiter owns it then.
pub(crate) fn unlock_pi(word: &AtomicU32) -> io::Result<()> {
    if word.compare_exchange(thread(), 0, Ordering::Release, Ordering::Relaxed).is_ok() {
        return Ok(());
    }
    // SAFETY: the word is alive; the call takes no other pointer.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_UNLOCK_PI) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
