//! What the HTML page of a comparison holds.
//!
//! Owns that shape. Leaves the figures to `analysis`, [`crate::flame_graphs`] and [`crate::side_by_side`], and the
//! page to `report-ui`.

use crate::RecordingComparison;
use crate::flame_graphs::DifferentialFlames;
use crate::side_by_side::SideBySide;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Value of [`HtmlComparison::schema`].
pub const HTML_COMPARISON_SCHEMA: &str = "slowpath-comparison-page/1";

/// Everything the HTML page of `slowpath compare` shows; the page carries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HtmlComparison {
    /// [`HTML_COMPARISON_SCHEMA`].
    #[schemars(extend("const" = HTML_COMPARISON_SCHEMA))]
    pub schema: String,
    /// When the page was made, RFC 3339.
    pub generated: String,
    /// What `compare --json` prints.
    pub comparison: RecordingComparison,
    /// Call stacks of both sides by weight; null where no weight can be compared.
    pub flame_graphs: Option<DifferentialFlames>,
    /// The launches of both sides beside each other, in the groups `before` and `after`; null where less than two are known.
    #[serde(default)]
    pub launches: Option<SideBySide>,
}
