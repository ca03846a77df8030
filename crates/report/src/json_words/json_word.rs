//! What is explained of a word: the form that the lists beside it have.

use crate::explain::NameKind;

/// A word of an enumeration.
#[derive(Clone, Copy, Debug)]
pub struct JsonWord {
    /// The enumeration.
    pub kind: NameKind,
    /// As JSON has it.
    pub name: &'static str,
    /// As screens have it; empty where that is its name.
    pub shown: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// What it means.
    pub what: &'static str,
    /// How to see it without Slowpath; empty where nothing shows it.
    pub by_hand: &'static str,
}
