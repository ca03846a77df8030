//! What cases in Rust need of the C library: how their process gets its memory, and how much processor time it used.

const PR_SET_THP_DISABLE: i32 = 41;
const M_MMAP_THRESHOLD: i32 = -3;
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn prctl(option: i32, ...) -> i32;
    fn mallopt(parameter: i32, value: i32) -> i32;
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// Processor time of the process so far, in ms.
pub fn cpu_ms() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the pointer is to a timespec of this system's 64-bit layout.
    let done = unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(done, 0, "clock_gettime");
    time.seconds as f64 * 1e3 + time.nanoseconds as f64 / 1e6
}

/// A page is 4 KiB, however the machine is set.
pub fn without_huge_pages() {
    // SAFETY: the call is given no pointer.
    unsafe { prctl(PR_SET_THP_DISABLE, 1u64, 0u64, 0u64, 0u64) };
}

/// Blocks of 128 KiB and more are mapped one by one. glibc's default learns from the first block that is freed; allocators of other
/// systems do not.
pub fn map_large_blocks() {
    // SAFETY: the call is given no pointer.
    assert_eq!(unsafe { mallopt(M_MMAP_THRESHOLD, 128 << 10) }, 1, "mallopt");
}
