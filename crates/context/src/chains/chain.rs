//! A chain, and the links that it is made of.

use crate::remedy::Remedy;
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
