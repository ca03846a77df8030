//! Evidence of a finding: rows that people and programs read. What carries it is [`crate::finding::Finding`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One row of evidence: named values. Names carry the unit where there is one (`blocked_ms`).
pub type Row = BTreeMap<String, Value>;

/// Rows of a recording, condensed, that show one aspect of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What the rows show, one sentence.
    pub text: String,
    /// The rows, most costly first.
    pub rows: Vec<Row>,
}

/// Builds a [`Row`] from pairs of name and value.
pub fn row<const N: usize>(cells: [(&str, Value); N]) -> Row {
    cells.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Nanoseconds as milliseconds with microsecond resolution, for rows that people read.
pub fn milliseconds(nanos: slowpath_tables::Nanos) -> Value {
    Value::from((nanos.0 as f64 / 1e3).round() / 1e3)
}
