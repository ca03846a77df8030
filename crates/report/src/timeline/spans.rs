//! Spans of a page: the columns that it gets, and which of them are so short that they become one.

use super::states::SEVERAL;
use crate::columns::{Numbers, base64};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spans, those of the first thread first; a span begins where the one before it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpanColumns {
    /// How many.
    pub count: u64,
    /// Index into the names of states, a byte each, in base64.
    pub states: String,
    /// Length in ns, as LEB128 in base64.
    pub lengths: String,
}

/// How many spans have how many bits of length, and so how short the shortest can be for the page to have room.
pub(super) struct Lengths {
    by_bits: [u64; 65],
}

impl Default for Lengths {
    fn default() -> Self {
        Self { by_bits: [0; 65] }
    }
}

impl Lengths {
    pub(super) fn see(&mut self, length: u64) {
        self.by_bits[(u64::BITS - length.leading_zeros()) as usize] += 1;
    }

    /// The least length with which no more than `most` spans are kept, besides one a thread: between two long ones there is at most
    /// one of those folded.
    pub(super) fn finest(&self, most: u64) -> u64 {
        let mut kept: u64 = self.by_bits.iter().sum();
        if kept <= most {
            return 0;
        }
        for (bits, count) in self.by_bits.iter().enumerate() {
            kept -= count;
            if kept.saturating_mul(2) <= most {
                return 1u64.checked_shl(bits as u32).unwrap_or(u64::MAX);
            }
        }
        u64::MAX
    }
}

/// Spans in the making.
#[derive(Default)]
pub(super) struct Spans {
    states: Vec<u8>,
    lengths: Numbers,
}

impl Spans {
    pub(super) fn push(&mut self, state: u8, length: u64) {
        self.states.push(state);
        self.lengths.push(length);
    }

    pub(super) fn columns(self) -> SpanColumns {
        SpanColumns { count: self.states.len() as u64, states: base64(&self.states), lengths: self.lengths.text() }
    }
}

/// Adds a span to those of a thread. Short ones that follow each other become one.
pub(super) fn fold(spans: &mut Vec<(u8, u64)>, state: u8, length: u64, finest: u64) {
    match spans.last_mut() {
        // What is short or folded already, and short again: such runs are bounded by spans that are kept.
        Some((last, sum)) if length < finest && (*last == SEVERAL || *sum < finest) => {
            *last = SEVERAL;
            *sum = sum.saturating_add(length);
        }
        _ => spans.push((state, length)),
    }
}
