//! What was recorded: the events that perf opened (`perf_event_attr`), and how their records are laid out.
//!
//! Layouts are those of `perf_event_open(2)`; offsets of fields follow from which fields an event asked for.

use super::little_endian::Fields;
use crate::cpu_event::CpuEvent;

/// `PERF_SAMPLE_*`: fields of a sample.
pub mod field {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const STACK_USER: u64 = 1 << 13;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Bytes of the first version of `perf_event_attr`.
const SHORTEST: u64 = 64;
/// `freq`: not the period is fixed, but the frequency.
const FREQUENCY: u64 = 1 << 10;
/// `sample_id_all`: all records end with what identifies a sample.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Which fields the records of an event have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `PERF_SAMPLE_*`.
    pub fields: u64,
    /// `PERF_FORMAT_*`: which counters a sample holds.
    pub counters: u64,
    /// Whether other records end with fields of samples.
    pub all: bool,
}

impl Layout {
    /// Bytes of these fields, those that were not asked for left out. All of them have eight.
    fn bytes(self, of: u64) -> u64 {
        u64::from((self.fields & of).count_ones()) * 8
    }

    /// The id of a record's event, where it says it.
    pub fn id(self, is_sample: bool, body: &[u8]) -> Option<u64> {
        let has_identifier = self.fields & field::IDENTIFIER != 0;
        if !has_identifier && self.fields & field::ID == 0 {
            return None;
        }
        if is_sample {
            let before = field::IP | field::TID | field::TIME | field::ADDR;
            return at(body, if has_identifier { 0 } else { self.bytes(before) });
        }
        let from_end = field::ID | field::STREAM_ID | field::CPU;
        self.at_end(body, if has_identifier { field::IDENTIFIER } else { from_end })
    }

    /// A record's time, where it says it.
    pub fn time(self, is_sample: bool, body: &[u8]) -> Option<u64> {
        if self.fields & field::TIME == 0 {
            return None;
        }
        if is_sample {
            return at(body, self.bytes(field::IDENTIFIER | field::IP | field::TID));
        }
        self.at_end(body, field::TIME | field::ID | field::STREAM_ID | field::CPU | field::IDENTIFIER)
    }

    /// Process and thread of a record that is no sample.
    pub fn task(self, body: &[u8]) -> Option<(u32, u32)> {
        if self.fields & field::TID == 0 {
            return None;
        }
        let all = field::TID | field::TIME | field::ID | field::STREAM_ID | field::CPU | field::IDENTIFIER;
        let both = self.at_end(body, all)?.to_le_bytes();
        let mut both = Fields(&both);
        Some((both.task()?, both.task()?))
    }

    /// The number that begins where these fields do, which are the last of a record that is no sample.
    fn at_end(self, body: &[u8], of: u64) -> Option<u64> {
        let from = (body.len() as u64).checked_sub(self.bytes(of))?;
        if self.all { at(body, from) } else { None }
    }
}

fn at(body: &[u8], offset: u64) -> Option<u64> {
    let mut fields = Fields(body);
    fields.take(offset)?;
    fields.u64()
}

/// What an event's samples show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// What the CPU runs.
    Cpu(CpuEvent),
    /// Page faults that read nothing.
    MinorFaults,
    /// Page faults that read storage.
    MajorFaults,
    /// Page faults of either kind.
    Faults,
    /// An event of the kernel, by the number of its format.
    Tracepoint(u64),
    /// Something else.
    Other,
}

/// An event that perf opened.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its name, where the file has it.
    pub name: Option<String>,
    /// How its records are laid out.
    pub layout: Layout,
    /// What each of its samples counts for, where that was fixed.
    pub period: Option<u64>,
    kind: u32,
    config: u64,
}

impl Event {
    /// The event of these bytes, and how many of them are its own.
    pub fn of(attr: &[u8]) -> Option<(Self, u64)> {
        let mut fields = Fields(attr);
        let kind = fields.u32()?;
        let size = match fields.u32()? {
            0 => SHORTEST,
            size => u64::from(size),
        };
        let config = fields.u64()?;
        let period = fields.u64()?;
        let (sample_type, counters, flags) = (fields.u64()?, fields.u64()?, fields.u64()?);
        if size < SHORTEST || size > attr.len() as u64 {
            return None;
        }
        let layout = Layout { fields: sample_type, counters, all: flags & SAMPLE_ID_ALL != 0 };
        // Otherwise it is how many samples a second there are to be.
        let period = Some(period).filter(|_| flags & FREQUENCY == 0);
        Some((Self { name: None, layout, period, kind, config }, size))
    }

    /// What its samples show.
    pub fn shows(&self) -> Shows {
        match (self.kind, self.config) {
            // The upper half names the kind of core.
            (0, config) if config as u32 == 0 => Shows::Cpu(CpuEvent::Cycles),
            (0, config) if config as u32 == 9 => Shows::Cpu(CpuEvent::ReferenceCycles),
            (1, 0) => Shows::Cpu(CpuEvent::CpuClock),
            (1, 1) => Shows::Cpu(CpuEvent::TaskClock),
            (1, 2) => Shows::Faults,
            (1, 5) => Shows::MinorFaults,
            (1, 6) => Shows::MajorFaults,
            (2, id) => Shows::Tracepoint(id),
            (0 | 1, _) => Shows::Other,
            // The number of another kind of event differs from machine to machine; its name does not.
            _ => self.name.as_deref().and_then(CpuEvent::of).map_or(Shows::Other, Shows::Cpu),
        }
    }

    /// What its samples are counted as, where nothing is made of them.
    pub fn word(&self) -> &str {
        let name = self.name.as_deref().unwrap_or_default();
        match name.split(':').next_back().filter(|word| self.kind == 2 && !word.is_empty()) {
            Some(tracepoint) => tracepoint,
            None => name.split([':', '/']).find(|word| !word.is_empty()).unwrap_or("an event without a name"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_event_asked_for_them() {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let with_id =
            Layout { fields: field::IP | field::TID | field::TIME | field::ID | field::CPU, counters: 0, all: true };
        let sample = words(&[0x4000, 7 | 8 << 32, 1000, 55, 1]);
        assert_eq!((with_id.id(true, &sample), with_id.time(true, &sample)), (Some(55), Some(1000)));
        let other = words(&[1, 2, 7 | 8 << 32, 1000, 55, 1]);
        assert_eq!((with_id.id(false, &other), with_id.time(false, &other)), (Some(55), Some(1000)));
        assert_eq!(with_id.task(&other), Some((7, 8)));
        let identified = Layout { fields: with_id.fields | field::IDENTIFIER, ..with_id };
        let sample = words(&[55, 0x4000, 7 | 8 << 32, 1000]);
        assert_eq!((identified.id(true, &sample), identified.time(true, &sample)), (Some(55), Some(1000)));
        let other = words(&[7 | 8 << 32, 1000, 54, 1, 55]);
        assert_eq!((identified.id(false, &other), identified.time(false, &other)), (Some(55), Some(1000)));
        let plain = Layout { all: false, ..with_id };
        assert_eq!((plain.time(false, &other), plain.task(&other), plain.id(true, &[])), (None, None, None));
    }
}
