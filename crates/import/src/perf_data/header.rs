//! What stands before and behind the records of a file: which events were recorded, and what perf knew of the machine.
//!
//! The layout is that of perf's `Documentation/perf.data-file-format.txt`. Sections are read where the head says they are, each up to a
//! limit; in perf's pipe form they come as records instead.

use super::event::Event;
use super::little_endian::Fields;
use super::recorded_events::RecordedEvents;
use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;
use slowpath_recording::Clock;
use slowpath_symbols::symbolize::hexadecimal;
use slowpath_tables::Nanos;

/// `PERFILE2`, with the lowest byte first.
pub const MAGIC: &[u8] = b"PERFILE2";
/// The same where the machine that wrote it had the highest byte first.
pub const MAGIC_BIG_ENDIAN: &[u8] = b"2ELIFREP";

/// Bytes of the head in pipe form.
const PIPE_HEAD: u64 = 16;
/// Bytes of the head of a file.
const FILE_HEAD: u64 = 104;
/// Bytes of the place of a section: offset and size.
const PLACE: u64 = 16;
/// Bytes of an event in the head; `perf_event_attr` has 136 now.
const LARGEST_EVENT: u64 = 4096;
/// Bytes of all events, and of the ids of one, in which each CPU has one.
const LARGEST_EVENTS: u64 = 1 << 20;
/// Bytes of any other section.
const LARGEST_SECTION: u64 = 64 << 20;

const HEAD: &str = "PERFILE2 and the size of the head: the begin of a little-endian perf.data";
const WHOLE_HEAD: &str = "the head of a perf.data file: 104 bytes";
const ANY_PLACE: &str = "a file whose places can be read in any order, or perf's pipe form (perf record -o -)";
const EVENTS: &str = "the events that were recorded, where the head says that they are";
const IDS: &str = "the ids of an event, where the head says that they are";
const SECTIONS: &str = "the list of sections behind the records";
const SECTION: &str = "a section of at most 64 MiB that the list names";

/// Sections that are read (`HEADER_*` of perf's `header.h`).
mod section {
    pub const TRACING_DATA: u64 = 1;
    pub const BUILD_ID: u64 = 2;
    pub const OS_RELEASE: u64 = 4;
    pub const ARCHITECTURE: u64 = 6;
    pub const CPUS: u64 = 7;
    pub const EVENT_NAMES: u64 = 12;
    pub const CLOCK: u64 = 29;
    pub const READ: [u64; 7] = [TRACING_DATA, BUILD_ID, OS_RELEASE, ARCHITECTURE, CPUS, EVENT_NAMES, CLOCK];
}

/// Highest number of CPUs of a kernel (`NR_CPUS`).
const MOST_CPUS: u32 = 8192;

/// Where the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// From here to the end, with what describes them among them.
    Pipe,
    /// From here on, so many bytes. 0 where perf was ended before it knew.
    File {
        /// Offset of the first.
        from: u64,
        /// Bytes.
        length: u64,
    },
}

/// Where a section is.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    size: u64,
}

fn place(fields: &mut Fields<'_>) -> Option<Place> {
    Some(Place { offset: fields.u64()?, size: fields.u64()? })
}

/// Reads the head of a file, its events, and as much as there is behind the records. The second value is what was wrong with that.
///
/// # Errors
/// It is no such file, or its events cannot be read: no record can be understood.
pub fn read(
    input: &mut Input<'_>,
    events: &mut RecordedEvents,
    trace: &mut Trace<'_>,
) -> Result<(Records, Result<(), ImportError>), ImportError> {
    let mut bytes = Vec::new();
    if !input.next_bytes(PIPE_HEAD, HEAD, &mut bytes)? || !bytes.starts_with(MAGIC) {
        return Err(input.wrong_bytes_at(0, HEAD));
    }
    let size = Fields(&bytes[MAGIC.len()..]).u64();
    if size == Some(PIPE_HEAD) {
        return Ok((Records::Pipe, Ok(())));
    }
    if !input.next_bytes(FILE_HEAD - PIPE_HEAD, WHOLE_HEAD, &mut bytes)? {
        return Err(input.wrong_bytes(WHOLE_HEAD));
    }
    let Some(head) = Head::of(&bytes) else { return Err(input.wrong_bytes(WHOLE_HEAD)) };
    if !input.seek(head.events.offset)? {
        return Err(input.wrong_bytes(ANY_PLACE));
    }
    read_events(input, events, &head)?;
    let Place { offset: from, size: length } = head.records;
    // A perf that was killed left no sections.
    let behind = if length == 0 { Ok(()) } else { sections(input, events, trace, &head) };
    input.seek(from)?;
    Ok((Records::File { from, length }, behind))
}

/// The head without its first 16 bytes.
struct Head {
    event_size: u64,
    events: Place,
    records: Place,
    sections: [u64; 4],
}

impl Head {
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let event_size = fields.u64()?;
        let (events, records, _event_types) = (place(&mut fields)?, place(&mut fields)?, place(&mut fields)?);
        let sections = [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
        Some(Self { event_size, events, records, sections })
    }
}

fn read_events(input: &mut Input<'_>, events: &mut RecordedEvents, head: &Head) -> Result<(), ImportError> {
    let Place { offset, size } = head.events;
    if !(PLACE..=LARGEST_EVENT).contains(&head.event_size) || size > LARGEST_EVENTS || size < head.event_size {
        return Err(input.wrong_bytes_at(offset, EVENTS));
    }
    let mut bytes = Vec::new();
    if !input.next_bytes(size, EVENTS, &mut bytes)? {
        return Err(input.wrong_bytes(EVENTS));
    }
    let mut ids = Vec::new();
    for entry in bytes.chunks_exact(head.event_size as usize) {
        let (attr, ids_at) = entry.split_at(entry.len() - PLACE as usize);
        let Some(((event, _), Place { offset, size })) = Event::of(attr).zip(place(&mut Fields(ids_at))) else {
            return Err(input.wrong_bytes_at(offset, EVENTS));
        };
        if size > LARGEST_EVENTS {
            return Err(input.wrong_bytes_at(offset, IDS));
        }
        input.seek(offset)?;
        if !input.next_bytes(size, IDS, &mut ids)? {
            return Err(input.wrong_bytes(IDS));
        }
        events.add(event, Fields(&ids));
    }
    Ok(())
}

fn sections(
    input: &mut Input<'_>,
    events: &mut RecordedEvents,
    trace: &mut Trace<'_>,
    head: &Head,
) -> Result<(), ImportError> {
    let Some(list) = head.records.offset.checked_add(head.records.size) else {
        return Err(input.wrong_bytes_at(head.records.offset, SECTIONS));
    };
    let present: Vec<u64> = (0..256).filter(|at| head.sections[*at as usize / 64] >> (at % 64) & 1 == 1).collect();
    input.seek(list)?;
    let mut places = Vec::new();
    if !input.next_bytes(present.len() as u64 * PLACE, SECTIONS, &mut places)? {
        return Err(input.wrong_bytes(SECTIONS));
    }
    let mut bytes = Vec::new();
    for (number, at) in present.into_iter().zip(places.chunks_exact(PLACE as usize)) {
        let Some(Place { offset, size }) = place(&mut Fields(at)).filter(|_| section::READ.contains(&number)) else {
            continue;
        };
        if size > LARGEST_SECTION {
            return Err(input.wrong_bytes_at(offset, SECTION));
        }
        input.seek(offset)?;
        if !input.next_bytes(size, SECTION, &mut bytes)? {
            return Err(input.wrong_bytes(SECTION));
        }
        if take_section(number, &bytes, events, trace).is_none() {
            return Err(input.wrong_bytes_at(offset, SECTION));
        }
    }
    Ok(())
}

/// Takes what a section says; none where it is cut or something else.
pub fn take_section(number: u64, bytes: &[u8], events: &mut RecordedEvents, trace: &mut Trace<'_>) -> Option<()> {
    let mut fields = Fields(bytes);
    match number {
        section::TRACING_DATA => events.take_formats(bytes, trace)?,
        section::BUILD_ID => build_ids(fields, trace)?,
        section::OS_RELEASE => trace.facts.kernel = Some(fields.counted_text()?),
        section::ARCHITECTURE => trace.facts.machine = Some(fields.counted_text()?),
        section::CPUS => {
            let _configured = fields.u32()?;
            trace.facts.cpus = Some(fields.u32()?).filter(|online| (1..=MOST_CPUS).contains(online));
        }
        section::EVENT_NAMES => {
            let (count, size) = (fields.u32()?, fields.u32()?);
            for at in 0..count {
                fields.take(u64::from(size))?;
                let ids = fields.u32()?;
                let name = fields.counted_text()?;
                let mut own = Fields(fields.take(u64::from(ids).checked_mul(8)?)?);
                events.name(at as usize, own.u64(), name);
            }
        }
        section::CLOCK => {
            let (version, _clock, day, own) = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u64()?);
            if version == 1 {
                let realtime = i64::try_from(day).unwrap_or(i64::MAX);
                trace.facts.clock = Some(Clock { monotonic: Nanos(own), realtime });
            }
        }
        _ => {}
    }
    Some(())
}

/// Records of which file has which build id: head of a record, process, 20 bytes with their length behind them, path.
fn build_ids(mut fields: Fields<'_>, trace: &mut Trace<'_>) -> Option<()> {
    while !fields.0.is_empty() {
        let (_kind, misc, size) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let mut record = Fields(fields.take(u64::from(size).checked_sub(8)?)?);
        record.u32()?;
        let id = record.take(20)?;
        let length = record.take(4)?.first().copied()?;
        // Files of older perfs have no length.
        let length = if misc & HAS_LENGTH != 0 { usize::from(length) } else { id.len() };
        trace.built(&super::little_endian::text(record.0), hexadecimal(id.get(..length).unwrap_or(id)));
    }
    Some(())
}

/// `PERF_RECORD_MISC_BUILD_ID_SIZE`.
const HAS_LENGTH: u16 = 1 << 15;
