//! The moments of a visit to a page (W3C Navigation Timing Level 2, Paint Timing).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A moment of a visit, in ms since the navigation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Milestone {
    /// The request went out (`requestStart`).
    Request,
    /// The first byte of the answer came (`responseStart`).
    FirstByte,
    /// The last byte came (`responseEnd`).
    LastByte,
    /// The document was parsed (`domInteractive`): its process ran by then.
    Interactive,
    /// Its deferred scripts had run (`domContentLoadedEventEnd`).
    ContentLoaded,
    /// Something was painted (`first-paint`).
    FirstPaint,
    /// Text or a picture was painted (`first-contentful-paint`).
    FirstContentfulPaint,
    /// Everything was loaded (`loadEventEnd`).
    Load,
}

impl Milestone {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Request,
        Self::FirstByte,
        Self::LastByte,
        Self::Interactive,
        Self::ContentLoaded,
        Self::FirstPaint,
        Self::FirstContentfulPaint,
        Self::Load,
    ];

    /// Its name in JSON and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::FirstByte => "first_byte",
            Self::LastByte => "last_byte",
            Self::Interactive => "interactive",
            Self::ContentLoaded => "content_loaded",
            Self::FirstPaint => "first_paint",
            Self::FirstContentfulPaint => "first_contentful_paint",
            Self::Load => "load",
        }
    }
}

/// The milestones that a visit came to. A page without text has no contentful paint.
pub type Visit = BTreeMap<Milestone, f64>;
