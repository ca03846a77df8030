//! Messages that are read one after the other into a buffer of 4 MiB.
//!
//!     transient-rust VARIANT [MESSAGES]
//!
//!     each       a new `Vec` for every message, mapped and unmapped every time
//!     kept       its twin: one `Vec` that is cleared
//!     recycled   a new `Vec` for every message, which malloc keeps and gives out again
//!
//! Prints one line: blocks that were mapped and unmapped, pages that were touched in them, and the CPU time of all messages in ms.

#[path = "../c_library.rs"]
mod c_library;

use c_library::{cpu_ms, map_large_blocks, without_huge_pages};
use std::hint::black_box;

/// Size of a message; with the allocator's header a block has one page more.
const MESSAGE: usize = 4 << 20;
const PAGES: usize = MESSAGE / 4096 + 1;

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
    without_huge_pages();
    if variant != "recycled" {
        map_large_blocks();
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
