//! The records of a file, one after the other: their heads, what stands behind some, and those that are compressed.

use super::little_endian::Fields;
use super::state::{Record, State};
use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;
use zstd::stream::raw::{Decoder, Operation};

/// Bytes of the head of a record: kind, details, size.
const HEAD_SIZE: u64 = 8;
/// Bytes that are unpacked at a time.
const CHUNK: usize = 128 << 10;
/// Bytes of the formats of the kernel's events, in pipe form.
const LARGEST_FORMATS: u64 = 64 << 20;

const HEAD: &str = "the head of a record: kind, details and size, of 8 bytes at least";
const WHOLE: &str = "as many bytes as the record's size says";
const MORE: &str = "as many bytes of records as the file's head says";
const AUXILIARY: &str = "as many bytes behind the record as it says";
const FORMATS: &str = "the formats of the kernel's events (at most 64 MiB) behind their record";
const PACKED: &str = "records that were compressed with zstd (perf record -z)";
const UNPACKED: &str = "a whole record at the end of those that were compressed";

/// Kinds of records that perf itself writes and that are read here; [`State`] knows those that describe events.
mod kind {
    pub const TRACING_DATA: u32 = 66;
    pub const AUXILIARY: u32 = 71;
    pub const COMPRESSED: u32 = 81;
    /// The same, with its length before the bytes.
    pub const COMPRESSED_2: u32 = 83;
}

/// Reads the records from here on: `length` bytes of them, or all that there are. It ends early where one was none of its kind.
///
/// # Errors
/// They end too early or are no records, or the recording cannot be written.
pub fn read(
    input: &mut Input<'_>,
    state: &mut State,
    trace: &mut Trace<'_>,
    length: Option<u64>,
) -> Result<(), ImportError> {
    let end = length.map(|length| input.offset().saturating_add(length));
    let mut head = Vec::new();
    let mut packed = Packed::default();
    while !state.is_wrong() {
        let offset = input.offset();
        if end.is_some_and(|end| offset >= end) {
            return packed.end(input);
        }
        if !input.next_bytes(HEAD_SIZE, HEAD, &mut head)? {
            return if end.is_some() { Err(input.wrong_bytes(MORE)) } else { packed.end(input) };
        }
        let Some((kind, misc, size)) = head_of(&head) else { return Err(input.wrong_bytes_at(offset, HEAD)) };
        let mut body = Vec::new();
        if !input.next_bytes(size, WHOLE, &mut body)? {
            return Err(input.wrong_bytes(WHOLE));
        }
        let mut fields = Fields(&body);
        match kind {
            kind::AUXILIARY => {
                let Some(size) = fields.u64() else { return Err(input.wrong_bytes_at(offset, WHOLE)) };
                input.skip(size, AUXILIARY)?;
                trace.facts.leave_out("auxtrace");
            }
            kind::TRACING_DATA => {
                let size = fields.u32().map(u64::from).filter(|size| *size <= LARGEST_FORMATS);
                let Some(size) = size else { return Err(input.wrong_bytes_at(offset, FORMATS)) };
                if !input.next_bytes(size, FORMATS, &mut head)? || state.events.take_formats(&head, trace).is_none() {
                    return Err(input.wrong_bytes_at(offset, FORMATS));
                }
            }
            kind::COMPRESSED => packed.unpack(&body, offset, (&*input, &mut *state, &mut *trace))?,
            kind::COMPRESSED_2 => {
                let size = fields.u64();
                let Some(bytes) = size.and_then(|size| fields.take(size)) else {
                    return Err(input.wrong_bytes_at(offset, PACKED));
                };
                packed.unpack(bytes, offset, (&*input, &mut *state, &mut *trace))?;
            }
            _ => state.take(trace, Record { kind, misc, body, offset })?,
        }
    }
    Ok(())
}

/// Kind, details and size of the rest of a record; none where the size is less than that of its head.
fn head_of(bytes: &[u8]) -> Option<(u32, u16, u64)> {
    let mut fields = Fields(bytes);
    let (kind, misc, size) = (fields.u32()?, fields.u16()?, fields.u16()?);
    Some((kind, misc, u64::from(size).checked_sub(HEAD_SIZE)?))
}

/// Compressed records: one stream through the whole file, in which a record may end in the next piece.
#[derive(Default)]
struct Packed {
    decoder: Option<Decoder<'static>>,
    /// What was unpacked and is no whole record yet.
    plain: Vec<u8>,
    chunk: Vec<u8>,
}

impl Packed {
    /// Unpacks the piece that stands at `offset` of the file, and hands on the records that are whole.
    fn unpack(
        &mut self,
        mut bytes: &[u8],
        offset: u64,
        (input, state, trace): (&Input<'_>, &mut State, &mut Trace<'_>),
    ) -> Result<(), ImportError> {
        let wrong = || input.wrong_bytes_at(offset, PACKED);
        self.chunk.resize(CHUNK, 0);
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => Decoder::new().map_err(|_| wrong())?,
        };
        while !state.is_wrong() {
            input.still_wanted()?;
            let done = decoder.run_on_buffers(bytes, &mut self.chunk).map_err(|_| wrong())?;
            bytes = bytes.get(done.bytes_read..).unwrap_or_default();
            self.plain.extend_from_slice(self.chunk.get(..done.bytes_written).unwrap_or_default());
            self.whole_records(offset, (input, &mut *state, &mut *trace))?;
            if bytes.is_empty() && done.bytes_written < CHUNK {
                break;
            }
            if done.bytes_read == 0 && done.bytes_written == 0 {
                return Err(wrong());
            }
        }
        self.decoder = Some(decoder);
        Ok(())
    }

    fn whole_records(
        &mut self,
        offset: u64,
        (input, state, trace): (&Input<'_>, &mut State, &mut Trace<'_>),
    ) -> Result<(), ImportError> {
        let mut rest = Fields(&self.plain);
        while !state.is_wrong() {
            let mut fields = rest;
            let Some(head) = fields.take(HEAD_SIZE) else { break };
            let Some((kind, misc, size)) = head_of(head) else { return Err(input.wrong_bytes_at(offset, HEAD)) };
            let Some(body) = fields.take(size) else { break };
            rest = fields;
            state.take(trace, Record { kind, misc, body: body.to_vec(), offset })?;
        }
        let used = self.plain.len() - rest.0.len();
        self.plain.drain(..used);
        Ok(())
    }

    /// That nothing is left over.
    fn end(&self, input: &Input<'_>) -> Result<(), ImportError> {
        if self.plain.is_empty() { Ok(()) } else { Err(input.wrong_bytes(UNPACKED)) }
    }
}
