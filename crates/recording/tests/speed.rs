//! How fast rows are written and read. Timing has no place in an ordinary test run; start it in release:
//! `cargo test --release -p slowpath-recording --test speed -- --ignored --nocapture`

mod samples;

use slowpath_recording::{Manifest, Recording, Writer};
use slowpath_tables::PageCache;
use std::time::Instant;

#[test]
#[ignore = "a measurement: run it in release"]
fn a_million_page_cache_rows_are_read_in_less_than_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let path = std::env::var_os("RECORDING_KEPT_AT").map_or(dir.path().join("r"), Into::into);
    let rows: Vec<PageCache> = samples::page_cache(0, 1_000_000).collect();
    let began = Instant::now();
    let mut writer = Writer::create(&path, Manifest::default()).unwrap();
    writer.push(rows.iter().cloned()).unwrap();
    writer.finish(|_| ()).unwrap();
    let written = began.elapsed();

    let began = Instant::now();
    let recording = Recording::open(&path).unwrap();
    let read = recording.read::<PageCache>().unwrap();
    let took = began.elapsed();
    assert!(read == rows);
    let bytes: u64 = recording.manifest().segments.iter().map(|segment| segment.bytes.0).sum();
    println!("1,000,000 rows: written in {written:?}, read in {took:?}, {:.1} bytes a row", bytes as f64 / 1e6);
    assert!(took.as_secs_f64() < 1.0, "reading took {took:?}");
}
