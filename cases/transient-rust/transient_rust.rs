//! Messages that are read one after the other into a buffer of 4 MiB.
//!
//!     transient-rust VARIANT [MESSAGES]
//!
//!     each       a new `Vec` for every message, mapped and unmapped every time
//!     kept       its twin: one `Vec` that is cleared
//!     recycled   a new `Vec` for every message, which malloc keeps and gives out again
//!
//! Prints one line: blocks that were mapped and unmapped, pages that were touched in them, and the CPU time of all messages in ms.

use std::hint::black_box;

/// Size of a message; with the allocator's header a block has one page more.
const MESSAGE: usize = 4 << 20;
const PAGES: usize = MESSAGE / 4096 + 1;

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

fn cpu_ms() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the pointer is to a timespec of this system's 64-bit layout.
    let done = unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(done, 0, "clock_gettime");
    time.seconds as f64 * 1e3 + time.nanoseconds as f64 / 1e6
}

#[inline(never)]
fn fill(buffer: &mut Vec<u8>, number: usize) {
    buffer.resize(MESSAGE, number as u8 | 1);
}

#[inline(never)]
fn read_message(number: usize) -> usize {
    let mut buffer: Vec<u8> = Vec::with_capacity(MESSAGE);
    fill(&mut buffer, number);
    black_box(&buffer).len()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let variant = words.get(1).map_or("", String::as_str);
    let messages: usize = words.get(2).map_or(Some(200), |word| word.parse().ok()).unwrap_or(0);
    if !["each", "kept", "recycled"].contains(&variant) || messages == 0 {
        eprintln!("usage: transient-rust each|kept|recycled [MESSAGES]");
        std::process::exit(2);
    }
    // SAFETY: neither call is given a pointer.
    unsafe {
        // A page is 4 KiB, however the machine is set.
        prctl(PR_SET_THP_DISABLE, 1u64, 0u64, 0u64, 0u64);
        // glibc's default learns from the first block that is freed; allocators of other systems do not.
        if variant != "recycled" {
            assert_eq!(mallopt(M_MMAP_THRESHOLD, 128 << 10), 1, "mallopt");
        }
    }
    let mut kept: Vec<u8> = Vec::with_capacity(if variant == "kept" { MESSAGE } else { 0 });
    let before = cpu_ms();
    let mut bytes = 0;
    for number in 0..messages {
        bytes += if variant == "kept" {
            kept.clear();
            fill(&mut kept, number);
            black_box(&kept).len()
        } else {
            read_message(number)
        };
    }
    let used = cpu_ms() - before;
    let operations = if variant == "each" { messages } else { 0 };
    let pages = operations * PAGES;
    println!("{variant} messages={messages} bytes={bytes} operations={operations} pages={pages} cpu_ms={used:.3}");
}
