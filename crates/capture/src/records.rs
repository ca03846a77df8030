//! What a kind of records in the ring is declared as: what it is called where it is lost, how large it is, and the rows that it becomes.
//!
//! Those of a probe stand in its declaration; all are listed in [`crate::record_kinds`].

use crate::context::Context;
use crate::events::Record;
use crate::file_rows::HostPaths;
use crate::names::Names;
use crate::stack::Stacks;
use slowpath_recording::Tables;

/// What decoding has and fills.
pub(crate) struct Decoding<'a> {
    /// The rows.
    pub(crate) out: Tables,
    pub(crate) context: &'a mut Context,
    pub(crate) stacks: &'a mut Stacks,
    pub(crate) host_paths: &'a HostPaths,
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
    pub(crate) is_reported_once: bool,
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
    pub(crate) fn clear_behind(self, record: &mut [u8]) {
        let length = self.length_at.and_then(|at| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?) as usize));
        let (at, bytes) = self.place;
        let Some(text) = record.get_mut(at..at + bytes as usize) else { return };
        let end = length.unwrap_or_else(|| text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
        text.iter_mut().skip(end).for_each(|byte| *byte = 0);
    }
}

impl RecordKind {
    /// A record of this type.
    pub(crate) const fn of<T: Record>(kind: u32, name: &'static str, decode: fn(&[u8], &mut Decoding<'_>)) -> Self {
        Self { kind, name, size: sized::<T>, events: |_| 1, is_reported_once: false, program: None, texts: &[], decode }
    }

    /// One with texts.
    pub(crate) const fn with_texts(self, texts: &'static [Text]) -> Self {
        Self { texts, ..self }
    }

    /// One that the kernel reports once.
    pub(crate) const fn reported_once(self) -> Self {
        Self { is_reported_once: true, ..self }
    }

    /// One that only this program of the probe reports.
    pub(crate) const fn reported_by(self, program: &'static str) -> Self {
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
