//! The events that perf recorded: their ids, names and formats, as the head of a file and records say them.

use super::event::Event;
use super::little_endian::Fields;
use super::tracepoint::Formats;
use crate::trace::Trace;
use std::collections::HashMap;

/// Events at most.
const MOST_EVENTS: usize = 1 << 14;
/// Ids of events: one for each event and CPU.
const MOST_IDS: usize = 1 << 20;

/// All that are known so far.
#[derive(Default)]
pub struct RecordedEvents {
    events: Vec<Event>,
    /// Numbers of events by their ids.
    by_id: HashMap<u64, usize>,
    /// Of the kernel's events.
    pub formats: Formats,
}

impl RecordedEvents {
    /// An event that was recorded, with its ids.
    pub fn add(&mut self, event: Event, mut ids: Fields<'_>) {
        if self.events.len() >= MOST_EVENTS {
            return;
        }
        while let Some(id) = ids.u64().filter(|_| self.by_id.len() < MOST_IDS) {
            self.by_id.insert(id, self.events.len());
        }
        self.events.push(event);
    }

    /// The name of the event with this id, or else with this number.
    pub fn name(&mut self, number: usize, id: Option<u64>, name: String) {
        let number = id.and_then(|id| self.by_id.get(&id).copied()).unwrap_or(number);
        if let Some(event) = self.events.get_mut(number) {
            event.name = Some(name);
        }
    }

    /// The formats of the kernel's events; none where they are something else.
    pub fn take_formats(&mut self, bytes: &[u8], trace: &mut Trace<'_>) -> Option<()> {
        let read = self.formats.read(bytes);
        trace.facts.page_size = self.formats.page_size.or(trace.facts.page_size);
        read
    }

    /// The event with this number.
    pub fn get(&self, number: usize) -> Option<&Event> {
        self.events.get(number)
    }

    /// The number of the event with this id.
    pub fn number_of(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// All, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }
}
