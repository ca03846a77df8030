//! What a burst does: one system call again and again, or code of the program alone.
//!
//! Each call goes through `syscall(2)` of the C library, so that nothing else runs in between and the vDSO is not taken. Code of the program is
//! there because switched-off speculation costs it, and not the calls, most.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What is done in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// `getppid`: entering the kernel, and nothing else.
    Getppid,
    /// `read` of one byte from `/dev/zero`.
    ReadByte,
    /// `futex` that wakes nobody.
    FutexWake,
    /// `clock_gettime` as a system call.
    ClockGettime,
    /// `openat` of `/dev/zero` and `close`.
    OpenClose,
    /// Loads behind stores whose address is known late: what store bypass is for.
    StoresAndLoads,
    /// Calls through a table of functions: what prediction of indirect branches is for.
    IndirectCalls,
}

/// Slots of the tables: both stay in the first level of every CPU's caches.
const SLOTS: usize = 512;

/// Address of the file that is read and opened.
const ZEROS: &std::ffi::CStr = c"/dev/zero";

impl Workload {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Getppid,
        Self::ReadByte,
        Self::FutexWake,
        Self::ClockGettime,
        Self::OpenClose,
        Self::StoresAndLoads,
        Self::IndirectCalls,
    ];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Getppid => "getppid",
            Self::ReadByte => "read_byte",
            Self::FutexWake => "futex_wake",
            Self::ClockGettime => "clock_gettime",
            Self::OpenClose => "open_close",
            Self::StoresAndLoads => "stores_and_loads",
            Self::IndirectCalls => "indirect_calls",
        }
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Getppid => "getppid: entering the kernel and nothing else",
            Self::ReadByte => "read of one byte from /dev/zero",
            Self::FutexWake => "futex that wakes nobody",
            Self::ClockGettime => "clock_gettime as a system call",
            Self::OpenClose => "openat and close of /dev/zero",
            Self::StoresAndLoads => "no call: loads behind stores to addresses that are known late",
            Self::IndirectCalls => "no call: functions called through a table",
        }
    }

    /// Numbers of the system calls it makes; none where it makes none.
    pub fn calls(self) -> &'static [i64] {
        match self {
            Self::Getppid => &[libc::SYS_getppid],
            Self::ReadByte => &[libc::SYS_read],
            Self::FutexWake => &[libc::SYS_futex],
            Self::ClockGettime => &[libc::SYS_clock_gettime],
            Self::OpenClose => &[libc::SYS_openat, libc::SYS_close],
            Self::StoresAndLoads | Self::IndirectCalls => &[],
        }
    }

    /// Whether it makes system calls.
    pub fn is_system_call(self) -> bool {
        !self.calls().is_empty()
    }
}

/// What all bursts work on: the same memory in every arm.
pub(crate) struct Bench {
    zeros: File,
    nobody: AtomicU32,
    slots: [AtomicU64; SLOTS],
}

impl Bench {
    pub(crate) fn new() -> io::Result<Self> {
        let slots = std::array::from_fn(|slot| AtomicU64::new(slot as u64));
        Ok(Self { zeros: File::open("/dev/zero")?, nobody: AtomicU32::new(0), slots })
    }

    /// So many steps; returns how many calls failed.
    pub(crate) fn burst(&self, workload: Workload, steps: u64) -> u64 {
        let descriptor = self.zeros.as_raw_fd();
        match workload {
            Workload::Getppid => count(steps, getppid),
            Workload::ReadByte => count(steps, || read_byte(descriptor)),
            Workload::FutexWake => count(steps, || wake(&self.nobody)),
            Workload::ClockGettime => count(steps, clock),
            Workload::OpenClose => count(steps, open_and_close),
            Workload::StoresAndLoads => {
                self.stores_and_loads(steps);
                0
            }
            Workload::IndirectCalls => {
                indirect_calls(steps);
                0
            }
        }
    }

    /// A chain of loads, and stores to places that a slower chain computes: a CPU that may let loads overtake stores does both
    /// at once.
    #[inline(never)]
    fn stores_and_loads(&self, steps: u64) {
        let (mut place, mut value) = (0x9e37_79b9_7f4a_7c15_u64, 0_u64);
        for _ in 0..steps {
            // The multiplier is Knuth's (MMIX).
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (upper, lower) = ((place >> 55) as usize % SLOTS, value as usize % SLOTS);
            self.slots[upper].store(upper as u64 ^ (place >> 20), Ordering::Relaxed);
            value = self.slots[lower].load(Ordering::Relaxed).wrapping_add(value);
        }
        black_box(value);
    }
}

/// Runs one call again and again, and counts how often it failed.
#[inline(always)]
fn count(steps: u64, call: impl Fn() -> bool) -> u64 {
    let mut failed = 0;
    for _ in 0..steps {
        failed += u64::from(!call());
    }
    failed
}

#[inline(always)]
fn getppid() -> bool {
    // SAFETY: takes and touches nothing.
    unsafe { libc::syscall(libc::SYS_getppid) >= 0 }
}

#[inline(always)]
fn read_byte(descriptor: RawFd) -> bool {
    let mut byte = 0_u8;
    // SAFETY: the kernel writes one byte to one of ours.
    unsafe { libc::syscall(libc::SYS_read, descriptor, &raw mut byte, 1_usize) == 1 }
}

#[inline(always)]
fn wake(word: &AtomicU32) -> bool {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel looks up the address of a word that lives.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) == 0 }
}

#[inline(always)]
fn clock() -> bool {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a structure of ours.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) == 0 }
}

#[inline(always)]
fn open_and_close() -> bool {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a constant with its end; the descriptor is closed by who opened it.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, ZEROS.as_ptr(), flags);
        descriptor >= 0 && libc::syscall(libc::SYS_close, descriptor) == 0
    }
}

type Step = fn(u64) -> u64;

/// Functions that differ, or they would be one.
const STEPS: [Step; 8] = [
    |x| x.wrapping_add(1),
    |x| x ^ 0x55,
    |x| x.rotate_left(3),
    |x| x.wrapping_mul(3),
    |x| x.wrapping_sub(7),
    |x| !x,
    |x| x.swap_bytes(),
    |x| x >> 1,
];

#[inline(never)]
fn indirect_calls(steps: u64) {
    let table = black_box(STEPS);
    let mut value = 1_u64;
    for step in 0..steps {
        // A pattern of some length: history predicts the next one, the address of the call alone does not.
        let which = (step ^ (step >> 2) ^ (step >> 5)) as usize % table.len();
        value = table[which](value);
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_a_burst_succeeds() {
        let bench = Bench::new().unwrap();
        for workload in Workload::ALL {
            assert_eq!(bench.burst(workload, 100), 0, "{workload:?}");
        }
    }

    #[test]
    fn names_are_those_of_json() {
        for workload in Workload::ALL {
            assert_eq!(serde_json::to_value(workload).unwrap(), workload.name());
        }
    }
}
