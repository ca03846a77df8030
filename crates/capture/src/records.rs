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
    /// Takes one.
    pub(crate) decode: fn(&[u8], &mut Decoding<'_>),
}

impl RecordKind {
    /// A record of this type.
    pub(crate) const fn of<T: Record>(kind: u32, name: &'static str, decode: fn(&[u8], &mut Decoding<'_>)) -> Self {
        Self { kind, name, size: sized::<T>, events: |_| 1, is_told_once: false, program: None, decode }
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
}
