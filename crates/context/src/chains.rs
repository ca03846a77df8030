//! Differences that follow from each other in ways that are known: what comes first, what it leads to, what that costs, and what can be
//! done about it.
//!
//! A chain is reported only where each of its links was read, in both contexts. The kernel's release is never taken as a link: what a
//! thread's own status says, counts.

mod filter_restricts_speculation;
mod nice_inside_sessions;
mod preloaded_library;

pub use filter_restricts_speculation::speculation_remedies;

use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of the two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// A link of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The factor.
    pub factor: String,
    /// What was read in the context that is concerned, and in the other.
    pub seen: String,
    /// Why it follows from the link before.
    pub why: String,
}

/// Something that can be done, with its price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// What.
    pub what: String,
    /// What is given up: security, energy, fairness.
    pub price: String,
}

impl Remedy {
    /// What can be done, and what is given up.
    pub fn new(what: impl Into<String>, price: impl Into<String>) -> Self {
        Self { what: what.into(), price: price.into() }
    }
}

/// Differences that follow from each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chain {
    /// The last link in one line.
    pub title: String,
    /// The context that pays.
    pub slower: Side,
    /// From the first cause to the last effect.
    pub links: Vec<Link>,
    /// What is known of the cost.
    pub cost: String,
    /// What can be done, the least price first.
    pub remedies: Vec<Remedy>,
    /// Where this is known from.
    pub sources: Vec<String>,
}

/// The known chains between two contexts.
pub fn chains(a: &Snapshot, b: &Snapshot) -> Vec<Chain> {
    let each = [filter_restricts_speculation::find, preloaded_library::find, nice_inside_sessions::find];
    each.into_iter().filter_map(|find| find(a, b)).collect()
}
