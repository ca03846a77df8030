//! The ring of events: how it is emptied into memory, and its bounds.

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::rc::Rc;

/// Raw records held in memory at most; the recording stops there and says so.
pub(crate) const RAW_LIMIT_BYTES: usize = 1 << 30;

/// What was read from the ring, record after record; each record's size follows from its kind.
#[derive(Default)]
pub(crate) struct RawBytes {
    pub(crate) bytes: Vec<u8>,
    /// Events that came when the limit was reached.
    pub(crate) refused: u64,
}

impl RawBytes {
    pub(crate) fn push(&mut self, record: &[u8]) {
        if self.bytes.len() + record.len() > RAW_LIMIT_BYTES {
            self.refused += crate::events::events_in(record);
            return;
        }
        self.bytes.extend_from_slice(record);
    }
}

/// The reading side of the ring.
pub(crate) struct Ring {
    buffer: RingBuffer<'static>,
    raw: Rc<RefCell<RawBytes>>,
}

impl Ring {
    pub(crate) fn new(map: &dyn MapCore) -> Result<Self, libbpf_rs::Error> {
        let raw = Rc::new(RefCell::new(RawBytes::default()));
        let sink = Rc::clone(&raw);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |record: &[u8]| {
            sink.borrow_mut().push(record);
            0
        })?;
        Ok(Self { buffer: builder.build()?, raw })
    }

    /// Moves all finished records into memory.
    pub(crate) fn drain(&self) -> Result<(), libbpf_rs::Error> {
        self.buffer.consume()
    }

    /// Adds a record that came another way.
    pub(crate) fn add(&self, record: &[u8]) {
        self.raw.borrow_mut().push(record);
    }

    pub(crate) fn refused(&self) -> u64 {
        self.raw.borrow().refused
    }

    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.raw.borrow_mut().bytes)
    }
}
