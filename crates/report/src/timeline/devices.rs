//! Block devices as lines of their own: when requests were in flight.

use super::page_numbers::PageNumbers;
use super::spans::Spans;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, FileKey};
use std::collections::BTreeMap;

/// States of a device by the requests in flight, reading and writing: `idle`, `reading`, `writing`, `reading_and_writing`.
const IDLE: u8 = 3;
const READING: u8 = 1;
const WRITING: u8 = 2;

/// Devices of a page; those with the most requests.
const MOST_DEVICES: usize = 16;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineDevice {
    /// Name, and its number. Foreign text.
    pub name: String,
    /// Begin of its first request.
    pub began_ns: i64,
    /// How many of `spans` are its.
    pub spans: u64,
    /// Requests of which both ends were seen.
    pub requests: u64,
    /// Bytes that they read.
    pub read: Bytes,
    /// Bytes that they wrote.
    pub written: Bytes,
    /// Requests of which the end was not seen; they are not drawn.
    pub unfinished: u64,
}

pub(super) fn of_tables(tables: &Tables, numbers: &PageNumbers, spans: &mut Spans) -> Vec<TimelineDevice> {
    let names: BTreeMap<u64, &str> = tables.manifest.devices.iter().map(|one| (one.dev, one.name.as_str())).collect();
    let mut by_device: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for row in &tables.block_io {
        by_device.entry(row.dev).or_default().push(row);
    }
    let mut all: Vec<_> = by_device.into_iter().collect();
    all.sort_by_key(|(dev, rows)| (std::cmp::Reverse(rows.len()), *dev));
    all.truncate(MOST_DEVICES);
    let device = |(dev, rows): (u64, Vec<&slowpath_tables::BlockIo>)| {
        // When the number of reads or writes in flight changes.
        let mut changes: Vec<(u64, bool, i32)> = Vec::with_capacity(2 * rows.len());
        let (mut read, mut written) = (0u64, 0u64);
        for row in &rows {
            let Some(latency) = row.latency else { continue };
            changes.push((row.ts.0, row.read, 1));
            changes.push((row.ts.0.saturating_add(latency.0), row.read, -1));
            let sum = if row.read { &mut read } else { &mut written };
            *sum = sum.saturating_add(row.bytes.0);
        }
        changes.sort_unstable();
        let first = changes.first()?.0;
        let (mut reads, mut writes, mut at, mut count) = (0i32, 0i32, first, 0u64);
        let mut open: Option<(u8, u64)> = None;
        for (ts, is_read, by) in &changes {
            let state = IDLE + if reads > 0 { READING } else { 0 } + if writes > 0 { WRITING } else { 0 };
            let length = ts - at;
            match &mut open {
                Some((same, sum)) if *same == state => *sum += length,
                _ if length > 0 => {
                    if let Some((state, length)) = open.replace((state, length)) {
                        spans.push(state, length);
                        count += 1;
                    }
                }
                _ => {}
            }
            *(if *is_read { &mut reads } else { &mut writes }) += by;
            at = *ts;
        }
        if let Some((state, length)) = open {
            spans.push(state, length);
            count += 1;
        }
        let (major, minor) = FileKey { dev, ino: 0 }.device();
        let number = format!("{major}:{minor}");
        Some(TimelineDevice {
            name: names.get(&dev).map_or_else(|| number.clone(), |name| format!("{name} ({number})")),
            began_ns: numbers.since_zero(slowpath_tables::Nanos(first)),
            spans: count,
            requests: changes.len() as u64 / 2,
            read: Bytes(read),
            written: Bytes(written),
            unfinished: rows.iter().filter(|row| row.latency.is_none()).count() as u64,
        })
    };
    all.into_iter().filter_map(device).collect()
}
