//! A filter over images of 8 MiB, tile by tile.
//!
//!     copied-back VARIANT [IMAGES]
//!
//!     scratch    each tile is copied into a scratch block, worked on there, and copied back
//!     in-place   its twin: each tile is worked on where it lies
//!     consumed   each tile is copied into a scratch block and read there: nothing comes back
//!     queue      tiles are copied from the image into a second one, and from there into a third
//!     moved      tiles are moved by one tile inside the image
//!     header     each tile is copied into a scratch block and read there; the first bytes of it are copied back
//!
//! Prints one line: what it did, a sum that is the same for a variant and its twin, and the CPU time of all images in ms.

#[path = "../c_library.rs"]
mod c_library;

use c_library::{cpu_ms, map_large_blocks, without_huge_pages};
use std::hint::black_box;

/// Size of an image and of a tile, in bytes. Blocks of both are mapped one by one by malloc.
const IMAGE: usize = 8 << 20;
const TILE: usize = 256 << 10;
/// What is copied back of a tile by `header`.
const HEADER: usize = 512;

/// A block with all its pages there.
#[inline(never)]
fn block(size: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(size);
    block.resize(size, 1);
    block
}

/// The work: one byte of each line of the cache.
#[inline(never)]
fn sharpen(tile: &mut [u8], number: usize) {
    for line in tile.iter_mut().step_by(64) {
        *line = line.wrapping_mul(5).wrapping_add(number as u8 | 1);
    }
}

#[inline(never)]
fn add_up(tile: &[u8]) -> u64 {
    tile.iter().step_by(64).map(|byte| u64::from(*byte)).sum()
}

#[inline(never)]
fn copy_in(scratch: &mut [u8], tile: &[u8]) {
    scratch[..tile.len()].copy_from_slice(tile);
    // So that the copy is a call of this function, and not a jump out of it.
    black_box(scratch);
}

#[inline(never)]
fn copy_back(tile: &mut [u8], scratch: &[u8]) {
    tile.copy_from_slice(&scratch[..tile.len()]);
    black_box(tile);
}

fn tiles() -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..IMAGE / TILE).map(|number| number * TILE..(number + 1) * TILE)
}

/// Its blocks: where the program works on more than an image.
struct Blocks {
    image: Vec<u8>,
    scratch: Vec<u8>,
    queue: Vec<u8>,
    output: Vec<u8>,
}

fn work(variant: &str, number: usize, blocks: &mut Blocks) -> u64 {
    let Blocks { image, scratch, queue, output } = blocks;
    let mut sum = 0;
    for place in tiles() {
        match variant {
            "scratch" => {
                copy_in(scratch, &image[place.clone()]);
                sharpen(scratch, number);
                copy_back(&mut image[place], scratch);
            }
            "in-place" => sharpen(&mut image[place], number),
            "consumed" | "header" => {
                copy_in(scratch, &image[place.clone()]);
                sum += add_up(scratch);
                if variant == "header" {
                    copy_back(&mut image[place.start..place.start + HEADER], scratch);
                }
            }
            "queue" => {
                copy_in(&mut queue[place.clone()], &image[place.clone()]);
                sharpen(&mut queue[place.clone()], number);
                copy_back(&mut output[place.clone()], &queue[place]);
            }
            _ if place.end < IMAGE => image.copy_within(place.clone(), place.end),
            _ => {}
        }
    }
    sum + add_up(black_box(if variant == "queue" { output } else { image }))
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let variant = words.get(1).map_or("", String::as_str);
    let images: usize = words.get(2).map_or(Some(100), |word| word.parse().ok()).unwrap_or(0);
    if !["scratch", "in-place", "consumed", "queue", "moved", "header"].contains(&variant) || images == 0 {
        eprintln!("usage: copied-back scratch|in-place|consumed|queue|moved|header [IMAGES]");
        std::process::exit(2);
    }
    without_huge_pages();
    map_large_blocks();
    let is_queue = variant == "queue";
    let mut blocks = Blocks {
        image: block(IMAGE),
        scratch: block(TILE),
        queue: block(if is_queue { IMAGE } else { 0 }),
        output: block(if is_queue { IMAGE } else { 0 }),
    };
    let before = cpu_ms();
    let sum: u64 = (0..images).map(|number| work(variant, number, &mut blocks)).fold(0, u64::wrapping_add);
    let used = cpu_ms() - before;
    println!("{variant} images={images} bytes={} sum={sum} cpu_ms={used:.3}", images * IMAGE);
}
