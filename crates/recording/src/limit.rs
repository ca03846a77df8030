//! The largest size of a recording, and who may use what is left of it.

use crate::write_error::WriteError;
use slowpath_tables::{
    BlockIo, Bytes, CpuEvent, CpuSample, Fault, Mapping, MemoryCall, OffCpu, Open, PageCache, Read, Readahead, Table,
};

/// Share of the limit whose use is announced: rows that are on their way still find room.
const ANNOUNCED_SHARE: u64 = 8;

/// Share of the limit that rows of [`EVENTS`] leave to the others.
const DESCRIBING_SHARE: u64 = 16;

/// Tables with a row for whatever happens. The others tell what these rows are about: without them, they are worth nothing.
const EVENTS: [&str; 11] = [
    Fault::NAME,
    Mapping::NAME,
    PageCache::NAME,
    Readahead::NAME,
    BlockIo::NAME,
    Open::NAME,
    Read::NAME,
    CpuSample::NAME,
    OffCpu::NAME,
    CpuEvent::NAME,
    MemoryCall::NAME,
];

/// The size that a recording must not exceed, and who may use what is left of it.
pub(crate) struct Limit {
    size: Bytes,
    is_announced: bool,
    /// No event fits any more.
    is_full_of_events: bool,
}

impl Limit {
    pub(crate) fn new(size: Bytes) -> Self {
        Self { size, is_announced: false, is_full_of_events: false }
    }

    /// What a segment of a table may have when so much is written.
    pub(crate) fn room(&self, table: &str, written: Bytes) -> Bytes {
        let kept = if EVENTS.contains(&table) { self.size.0 / DESCRIBING_SHARE } else { 0 };
        let is_closed = kept > 0 && self.is_full_of_events;
        Bytes(if is_closed { 0 } else { (self.size.0 - kept).saturating_sub(written.0) })
    }

    /// Notes a segment, and whether it was cut; the error makes the caller stop.
    pub(crate) fn note(&mut self, table: &str, is_cut: bool, written: Bytes) -> Result<(), WriteError> {
        self.is_full_of_events |= is_cut && EVENTS.contains(&table);
        let is_near = written.0 > self.size.0 - self.size.0 / ANNOUNCED_SHARE;
        let is_news = is_near && !self.is_announced;
        self.is_announced |= is_near || is_cut;
        if is_cut || is_news { Err(WriteError::LimitReached { limit: self.size }) } else { Ok(()) }
    }
}
