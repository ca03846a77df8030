//! The ring of events: how it is emptied into memory, and its bounds.

use crate::events::{self, EVENT_MEMORY_WORK, EVENT_PAGE_CACHE, event_header};
use crate::kernel_symbols::KernelSymbols;
use crate::record_kinds;
use crate::stack::{NewModule, mapped_module};
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use slowpath_tables::{Losses, Nanos};
use std::cell::RefCell;
use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// Raw records held in memory at most, unless they are taken meanwhile; the recording stops there and says so.
pub(crate) const RAW_LIMIT_BYTES: usize = 1 << 30;

/// What was read from the ring, record after record; each record's size follows from its kind.
#[derive(Default)]
pub(crate) struct RawBytes {
    bytes: Vec<u8>,
    /// Events by kind that came when the limit was reached.
    refused: Losses,
    /// Files that were mapped executable and were not asked for yet.
    modules: Vec<NewModule>,
    known_modules: HashSet<u32>,
    /// When recording ended.
    ended: Option<Nanos>,
    /// Where the owner of the recording is not to know where the kernel's code is.
    hides: Option<KernelSymbols>,
}

impl RawBytes {
    /// `came` is as it stands in the ring.
    pub(crate) fn push(&mut self, came: &[u8]) {
        let cleared = self.hides.is_some().then(|| record_kinds::cleared(came)).flatten();
        let record = cleared.as_deref().unwrap_or(came);
        if self.is_late(record) {
            return;
        }
        if let Some(module) = mapped_module(record)
            && self.known_modules.insert(module.module)
        {
            self.modules.push(module);
        }
        let hidden = self.hides.as_mut().and_then(|kernel| kernel.hide(record));
        let record = hidden.as_deref().unwrap_or(record);
        if self.bytes.len() + record.len() > RAW_LIMIT_BYTES {
            let kind = events::record::<event_header>(record).map_or(events::EVENT_KINDS, |header| header.kind.into());
            self.refused
                .add(&format!("over_memory_limit.{}", record_kinds::kind_name(kind)), record_kinds::events_in(record));
            return;
        }
        self.bytes.extend_from_slice(record);
    }

    /// Whether a record of what any task of the machine may do is from after the end. No other is: nobody is followed any more.
    fn is_late(&self, record: &[u8]) -> bool {
        let (Some(ended), Some(header)) = (self.ended, events::record::<event_header>(record)) else { return false };
        matches!(u32::from(header.kind), EVENT_MEMORY_WORK | EVENT_PAGE_CACHE) && header.ts > ended.0
    }
}

/// The reading side of the ring.
pub(crate) struct Ring {
    buffer: RingBuffer<'static>,
    map: OwnedFd,
    raw: Rc<RefCell<RawBytes>>,
}

impl Ring {
    /// `hides` where the kernel's addresses are not to leave the recorder.
    pub(crate) fn new(map: &dyn MapCore, hides: Option<KernelSymbols>) -> Result<Self, libbpf_rs::Error> {
        let raw = Rc::new(RefCell::new(RawBytes { hides, ..RawBytes::default() }));
        let sink = Rc::clone(&raw);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |record: &[u8]| {
            sink.borrow_mut().push(record);
            0
        })?;
        let map = map.as_fd().try_clone_to_owned().map_err(libbpf_rs::Error::from)?;
        Ok(Self { buffer: builder.build()?, map, raw })
    }

    /// The ring itself: it can be polled, and is readable while anything is in it.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    /// Moves all finished records into memory.
    pub(crate) fn drain(&self) -> Result<(), libbpf_rs::Error> {
        self.buffer.consume()
    }

    /// Adds a record that came another way.
    pub(crate) fn add(&self, record: &[u8]) {
        self.raw.borrow_mut().push(record);
    }

    pub(crate) fn refused(&self) -> Losses {
        self.raw.borrow().refused.clone()
    }

    /// Files that were mapped executable since the last call, each once.
    pub(crate) fn new_modules(&self) -> Vec<NewModule> {
        std::mem::take(&mut self.raw.borrow_mut().modules)
    }

    /// A file that need not be asked for.
    pub(crate) fn knows_module(&self, module: u32) {
        self.raw.borrow_mut().known_modules.insert(module);
    }

    /// A file that is to be reported again when it is mapped again.
    pub(crate) fn forgets_module(&self, module: u32) {
        self.raw.borrow_mut().known_modules.remove(&module);
    }

    /// Recording ended then: what programs tell of the whole machine until they are detached is left out.
    pub(crate) fn end(&self, ended: Nanos) {
        self.raw.borrow_mut().ended = Some(ended);
    }

    /// What was moved into memory and not taken yet.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.raw.borrow_mut().bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EVENT_EXIT, EVENT_MODULE, bytes_of, exit_event, memory_work_event, module_event};

    #[test]
    fn a_file_is_asked_for_once_unless_it_is_forgotten() {
        let header = event_header { kind: EVENT_MODULE as u16, ..Default::default() };
        let bytes = bytes_of(&module_event { header, module: 5, ..Default::default() });
        let mut raw = RawBytes::default();
        raw.push(&bytes);
        raw.push(&bytes);
        assert_eq!(raw.modules.len(), 1);
        raw.known_modules.remove(&5);
        raw.push(&bytes);
        assert_eq!(raw.modules.len(), 2);
    }

    #[test]
    fn what_others_do_after_the_end_is_left_out_and_what_was_recorded_and_comes_late_is_not() {
        let header = |kind: u32, ts| event_header { kind: kind as u16, ts, ..Default::default() };
        let work = |ts| bytes_of(&memory_work_event { header: header(EVENT_MEMORY_WORK, ts), ..Default::default() });
        // Reported by the walk over those that live on, with the moment of the report.
        let exit = |ts| bytes_of(&exit_event { header: header(EVENT_EXIT, ts), ..Default::default() });
        let mut raw = RawBytes::default();
        raw.push(&work(30));
        raw.ended = Some(Nanos(20));
        [work(19), work(20), exit(21), work(21)].iter().for_each(|record| raw.push(record));
        assert_eq!(raw.bytes, [work(30), work(19), work(20), exit(21)].concat());
        assert_eq!(raw.refused.total(), 0);
    }
}
