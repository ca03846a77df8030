//! What a launch will need: files and their ranges in the order in which they are asked for, and with which options.
//!
//! Owns the plan as data. Leaves making one to [`super::build`], its form in a file to [`super::file`], and what
//! it is as a fix to [`super::fix`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Bytes, PAGE_SIZE, Pages};

/// Order of the ranges of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By the first use of the range's earliest page.
    #[default]
    FirstUse,
    /// File by file in the order of the files' first use, by offset within a file.
    FileOffset,
    /// At random, to measure what the order is worth; equal seeds give equal orders.
    Shuffled(u64),
}

/// How a plan is made from a demand and how it is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanOptions {
    /// Ranges are merged over gaps of up to this many pages that nobody needs.
    pub gap_pages: u64,
    /// A range is no longer than this.
    pub cap_bytes: u64,
    /// Order of the ranges.
    pub order: Order,
    /// Threads that replay the list; they take ranges from one list, so its order is kept.
    pub threads: u32,
    /// Most bytes asked for and not yet there, over all threads; none asks for everything at once. What the launch
    /// needs and the plan does not hold waits behind them in the device's queue.
    pub in_flight_bytes: Option<u64>,
    /// A further thread opens all files ahead, so that metadata is read while data is.
    pub metadata: bool,
    /// The rival: every needed file whole instead of its needed ranges; `gap_pages` and `cap_bytes` do not apply.
    pub whole_files: bool,
}

impl Default for PlanOptions {
    /// What gained most where it was tried (docs/preload-plan.md). 1 MiB on its way is two dozen requests of the usual
    /// size: more than a disk works on at once, and no more than a few ms of waiting for a page that the plan lacks.
    fn default() -> Self {
        Self {
            gap_pages: 2,
            cap_bytes: 256 * 1024,
            order: Order::FirstUse,
            threads: 1,
            in_flight_bytes: Some(1 << 20),
            metadata: false,
            whole_files: false,
        }
    }
}

/// A file of a plan, with what identifies the content the plan was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedFile {
    /// Absolute path.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Modification time, ns since 1970.
    pub mtime_ns: i64,
    /// ELF build-id in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// Consecutive pages of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRange {
    /// Index into [`PreloadPlan::files`].
    pub file: u32,
    /// First page.
    pub page: Pages,
    /// Number of pages.
    pub pages: Pages,
}

/// Where a plan comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// When it was made, RFC 3339.
    pub created: String,
    /// Command line it was made for.
    pub command: Vec<String>,
    /// Recordings of the trainings it was made from.
    pub recordings: Vec<String>,
}

/// What a launch will need, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreloadPlan {
    /// Where it comes from.
    pub provenance: Provenance,
    /// How it was made.
    pub options: PlanOptions,
    /// Files.
    pub files: Vec<PlannedFile>,
    /// Ranges, in the order in which they are asked for.
    pub ranges: Vec<PlannedRange>,
}

impl PreloadPlan {
    /// Pages of all ranges.
    pub fn pages(&self) -> Pages {
        self.ranges.iter().map(|range| range.pages).sum()
    }

    /// Bytes of all ranges, each cut at the end of its file.
    pub fn bytes(&self) -> Bytes {
        let of_range = |range: &PlannedRange| {
            let (from, to) = self.byte_range(range);
            Bytes(to - from)
        };
        self.ranges.iter().map(of_range).sum()
    }

    /// First byte of a range and the byte after its last, not beyond the end of its file.
    pub fn byte_range(&self, range: &PlannedRange) -> (u64, u64) {
        let size = self.files.get(range.file as usize).map_or(0, |file| file.size);
        let from = range.page.0.saturating_mul(PAGE_SIZE).min(size);
        (from, range.page.0.saturating_add(range.pages.0).saturating_mul(PAGE_SIZE).min(size))
    }

    /// The plan in the form that predictions take.
    pub fn schedule(&self) -> slowpath_analysis::io::predict::Schedule {
        slowpath_analysis::io::predict::Schedule {
            paths: self.files.iter().map(|file| file.path.clone()).collect(),
            ranges: self.ranges.iter().map(|range| (range.file, range.page.0, range.pages.0)).collect(),
        }
    }
}
