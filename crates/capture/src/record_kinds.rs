//! Which kinds of records there are, by their numbers: those of the probes, and others, which several probes or the recorder itself tell.
//! What a kind is declared as is in [`crate::records`].

use crate::events::{self, EVENT_KINDS, event_header, record};
use crate::probes;
use crate::records::{RecordKind, Text};
use std::mem::offset_of;
use std::sync::LazyLock;

/// What no single probe reports.
static OF_NO_PROBE: [RecordKind; 4] = [
    RecordKind::of::<events::name_event>(events::EVENT_NAME, "file_names", |bytes, to| {
        if let Some(event) = record(bytes) {
            to.names.learn(&event);
        }
    })
    .with_texts(&[Text::ended(offset_of!(events::name_event, name), events::FILENAME_BYTES)])
    .reported_once(),
    RecordKind::of::<events::kernel_symbol_event>(events::EVENT_KERNEL_SYMBOL, "kernel_symbols", |bytes, to| {
        if let Some(event) = record::<events::kernel_symbol_event>(bytes) {
            to.kernel_symbols.push((event.address, events::text(&event.name)));
        }
    })
    .reported_once(),
    RecordKind::of::<events::stack_event>(events::EVENT_STACK, "stacks", |bytes, to| {
        to.stacks.learn(bytes, to.context);
    })
    .sized_by(events::size_of_stack)
    .reported_once(),
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

/// Size of the record at the beginning of `bytes`; `None` for a kind that does not exist and for one that is cut off.
pub fn size_of_record(bytes: &[u8]) -> Option<usize> {
    let header = record::<event_header>(bytes)?;
    let size = (of(u32::from(header.kind))?.size)(bytes)?;
    (size <= bytes.len()).then_some(size)
}

/// Events that a record stands for: several for a batch of faults.
pub fn events_in(bytes: &[u8]) -> u64 {
    let kind = record::<event_header>(bytes).and_then(|header| of(u32::from(header.kind)));
    kind.map_or(1, |kind| (kind.events)(bytes))
}

/// Name of a kind in loss lists.
pub fn kind_name(kind: u32) -> &'static str {
    of(kind).map_or("file_names", |kind| kind.name)
}

/// Names of all kinds in loss lists.
pub fn kinds_of_losses() -> impl Iterator<Item = &'static str> {
    (0..EVENT_KINDS).map(kind_name)
}

/// A record with nothing of older ones in it; `None` where it has no text.
pub(crate) fn cleared(record: &[u8]) -> Option<Vec<u8>> {
    let header = self::record::<event_header>(record)?;
    let texts = of(header.kind.into())?.texts;
    let mut cleared = (!texts.is_empty()).then(|| record.to_vec())?;
    texts.iter().for_each(|text| text.clear_behind(&mut cleared));
    Some(cleared)
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
