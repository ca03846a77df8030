//! What can be done about a difference, and its price.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
