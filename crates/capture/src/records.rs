//! The kinds of records in the ring: what each is called where it is lost, how large it is, and the rows that it becomes.
//!
//! Those of a probe stand in its declaration. Here are the others, which several probes or the recorder itself tell.

use crate::context::Context;
use crate::events::{self, EVENT_KINDS, Record, record};
use crate::file_rows::Place;
use crate::names::Names;
use crate::probes;
use crate::stack::Stacks;
use slowpath_recording::Tables;
use std::mem::offset_of;
use std::sync::LazyLock;

/// What decoding has and fills.
pub(crate) struct Decoding<'a> {
    /// The rows.
    pub(crate) out: Tables,
    pub(crate) context: &'a mut Context,
    pub(crate) stacks: &'a mut Stacks,
    pub(crate) place: &'a Place,
    pub(crate) names: &'a mut Names,
    /// Names of the kernel's functions.
    pub(crate) kernel_symbols: &'a mut Vec<(u64, String)>,
}

/// A kind of records.
pub(crate) struct RecordKind {
    /// Its number in `events.h`.
    pub(crate) kind: u32,
    /// Name in loss lists.
    pub(crate) name: &'static str,
    /// Size of one at the beginning of the bytes; `None` where it says nothing possible.
    pub(crate) size: fn(&[u8]) -> Option<usize>,
    /// Events that one stands for.
    pub(crate) events: fn(&[u8]) -> u64,
    /// Whether the kernel reports it once and later records refer to it: it is kept where others are given up.
    pub(crate) is_told_once: bool,
    /// The only program that reports it, where the probe has several.
    pub(crate) program: Option<&'static str>,
    /// Its texts.
    pub(crate) texts: &'static [Text],
    /// Takes one.
    pub(crate) decode: fn(&[u8], &mut Decoding<'_>),
}

/// A text in a record. Behind its end stands what an older record left there: the kernel does not clear the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    /// Where it begins, and the bytes that it may have.
    pub(crate) place: (usize, u32),
    /// Where its length stands; `None` for one that ends with NUL.
    pub(crate) length_at: Option<usize>,
}

impl Text {
    /// One that ends with NUL.
    pub(crate) const fn ended(at: usize, bytes: u32) -> Self {
        Self { place: (at, bytes), length_at: None }
    }

    /// One whose length stands at `length_at`, a `u32`.
    pub(crate) const fn counted(at: usize, bytes: u32, length_at: usize) -> Self {
        Self { place: (at, bytes), length_at: Some(length_at) }
    }

    /// Clears what is behind its end.
    fn clear_behind(self, record: &mut [u8]) {
        let length = self.length_at.and_then(|at| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?) as usize));
        let (at, bytes) = self.place;
        let Some(text) = record.get_mut(at..at + bytes as usize) else { return };
        let end = length.unwrap_or_else(|| text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
        text.iter_mut().skip(end).for_each(|byte| *byte = 0);
    }
}

/// A record with nothing of older ones in it; `None` where it has no text.
pub(crate) fn cleared(record: &[u8]) -> Option<Vec<u8>> {
    let header = self::record::<events::event_header>(record)?;
    let texts = of(header.kind.into())?.texts;
    let mut cleared = (!texts.is_empty()).then(|| record.to_vec())?;
    texts.iter().for_each(|text| text.clear_behind(&mut cleared));
    Some(cleared)
}

impl RecordKind {
    /// A record of this type.
    pub(crate) const fn of<T: Record>(kind: u32, name: &'static str, decode: fn(&[u8], &mut Decoding<'_>)) -> Self {
        Self { kind, name, size: sized::<T>, events: |_| 1, is_told_once: false, program: None, texts: &[], decode }
    }

    /// One with texts.
    pub(crate) const fn with_texts(self, texts: &'static [Text]) -> Self {
        Self { texts, ..self }
    }

    /// One that the kernel reports once.
    pub(crate) const fn told_once(self) -> Self {
        Self { is_told_once: true, ..self }
    }

    /// One that only this program of the probe reports.
    pub(crate) const fn told_by(self, program: &'static str) -> Self {
        Self { program: Some(program), ..self }
    }

    /// One whose size stands in it.
    pub(crate) const fn sized_by(self, size: fn(&[u8]) -> Option<usize>) -> Self {
        Self { size, ..self }
    }
}

fn sized<T>(_: &[u8]) -> Option<usize> {
    Some(size_of::<T>())
}

/// What no single probe reports.
static OF_NO_PROBE: [RecordKind; 4] = [
    RecordKind::of::<events::name_event>(events::EVENT_NAME, "file_names", |bytes, to| {
        if let Some(event) = record(bytes) {
            to.names.learn(&event);
        }
    })
    .with_texts(&[Text::ended(offset_of!(events::name_event, name), events::FILENAME_BYTES)])
    .told_once(),
    RecordKind::of::<events::kernel_symbol_event>(events::EVENT_KERNEL_SYMBOL, "kernel_symbols", |bytes, to| {
        if let Some(event) = record::<events::kernel_symbol_event>(bytes) {
            to.kernel_symbols.push((event.address, events::text(&event.name)));
        }
    })
    .told_once(),
    RecordKind::of::<events::stack_event>(events::EVENT_STACK, "stacks", |bytes, to| {
        to.stacks.learn(bytes, to.context);
    })
    .sized_by(events::size_of_stack)
    .told_once(),
    // For an audit only.
    RecordKind::of::<events::stack_copy_event>(events::EVENT_STACK_COPY, "stack_copies", |_, _| ())
        .sized_by(events::size_of_copy),
];

type ByNumber = [Option<&'static RecordKind>; EVENT_KINDS as usize];

static BY_NUMBER: LazyLock<ByNumber> = LazyLock::new(|| {
    let mut all: ByNumber = [None; EVENT_KINDS as usize];
    for one in probes::declared().flat_map(|probe| probe.records).chain(&OF_NO_PROBE) {
        if let Some(place) = all.get_mut(one.kind as usize) {
            *place = Some(one);
        }
    }
    all
});

/// The kind of this number; `None` where there is none.
pub(crate) fn of(kind: u32) -> Option<&'static RecordKind> {
    BY_NUMBER.get(kind as usize).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_events_h_is_declared_once() {
        let mut kinds: Vec<u32> =
            probes::declared().flat_map(|probe| probe.records).chain(&OF_NO_PROBE).map(|one| one.kind).collect();
        kinds.sort_unstable();
        let known: Vec<u32> = (0..EVENT_KINDS).filter(|kind| of(*kind).is_some()).collect();
        assert_eq!(kinds, known, "a kind is declared twice");
        let unused: Vec<u32> = (0..EVENT_KINDS).filter(|kind| of(*kind).is_none()).collect();
        assert!(unused.is_empty() || unused == [0], "kinds without a declaration: {unused:?}");
    }

    #[test]
    fn what_an_older_record_left_behind_a_text_is_cleared() {
        let header = events::event_header { kind: events::EVENT_EXEC as u16, ..Default::default() };
        let mut event = events::exec_event { header, command_line_length: 3, start: 7, ..Default::default() };
        event.filename.fill(0x11);
        event.filename[2] = 0;
        event.command_line.fill(0x11);
        let cleared = record::<events::exec_event>(&cleared(&events::bytes_of(&event)).unwrap()).unwrap();
        assert_eq!((&cleared.filename[..3], cleared.start), (&[0x11, 0x11, 0][..], 7));
        assert_eq!(cleared.command_line[..4], [0x11, 0x11, 0x11, 0]);
        let behind = cleared.filename[3..].iter().chain(&cleared.command_line[3..]);
        assert!(behind.into_iter().all(|byte| *byte == 0));
        // A length that no text has, and a record that has none.
        let event = events::exec_event { header, command_line_length: u32::MAX, ..Default::default() };
        assert!(super::cleared(&events::bytes_of(&event)).is_some());
        assert!(super::cleared(&events::bytes_of(&events::fork_event::default())).is_none());
    }
}
