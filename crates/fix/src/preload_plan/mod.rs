//! The fix `preload_plan`: tell the kernel early, and in the right order, which pages a launch will need.
//!
//! - [`build`]: demand of trainings -> ordered ranges;
//! - [`file`]: the plan as a file, written for people and read as hostile input;
//! - [`check`]: which files of a plan are still those it was made for;
//! - [`open`]: opening a planned file as the user, regular files only;
//! - [`replay`]: asking the kernel for the ranges;
//! - [`printed`]: what checks and replays print as JSON;
//! - [`beside`]: replaying beside a command that takes this process's place;
//! - `reader`: who does that, and what such a process may do.

pub mod beside;
pub mod build;
pub mod check;
pub mod file;
pub mod open;
pub mod printed;
pub mod program;
mod reader;
pub mod replay;

use crate::declaration::Declaration;
use crate::digest::sha256;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::treatment::Treatment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Bytes, PAGE_SIZE, Pages};

/// Name of the fix.
pub const NAME: &str = "preload_plan";

/// The fix.
pub const FIX: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "read the needed pages ahead, in order of use",
    what: "A plan lists the file pages that recorded cold launches needed, in the order of use; a process beside the \
           launch reads them in large requests.",
    why: "The device reads in large requests and never idles, so the launch finds most of its pages in the page cache \
          when it touches them.",
    price: "a process beside each launch, whose program is read first where it is not cached (slowpath-preload 1 MB, slowpath 8), page cache \
            for the plan, and a plan that has to be made again when the files change",
    by_hand: "slowpath preload plan DIR -o PLAN, then slowpath-preload PLAN -- COMMAND (or slowpath preload run); without the wrapper nothing is changed",
    trial: "in a lab, in cold launches, against an untreated launch and shams of the same kind",
    propose: None,
};

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

    /// SHA-256 of this plan as a file.
    fn sha256(&self) -> Option<String> {
        let mut text = Vec::new();
        file::write(self, &mut text).ok()?;
        Some(sha256(&text))
    }

    /// The description of this plan as a fix; `file` is its name in the directory of the diagnosis.
    pub fn fix_plan(&self, file: &str) -> FixPlan {
        let megabytes = self.bytes().as_mb();
        let name = if self.options.whole_files { "preload_plan whole files" } else { NAME };
        FixPlan {
            fix: NAME.to_owned(),
            name: name.to_owned(),
            title: format!(
                "ask the kernel at start for {megabytes:.1} MB in {} ranges of {} files",
                self.ranges.len(),
                self.files.len()
            ),
            changes: vec![Change {
                what: "the command that starts the program".to_owned(),
                from: Some("CMD".to_owned()),
                to: "slowpath-preload PLAN -- CMD, or slowpath preload run PLAN -- CMD".to_owned(),
            }],
            scope: Scope::Launch,
            privilege: Privilege::User,
            side_effects: vec![
                format!("up to {megabytes:.1} MB of page cache are filled at each cold launch"),
                "a second process reads beside the launch and competes with other readers of the same disk".to_owned(),
                "files that changed since the plan was made are skipped; the plan must be made again to cover them"
                    .to_owned(),
            ],
            price: "a process beside each launch, and a plan that is to be made again when the files change".to_owned(),
            security_cost:
                "none: the plan is replayed as the user, opens regular files for reading only and follows no \
                            symbolic link; it is a list of paths of the program's files and can be read as such"
                    .to_owned(),
            undo: "start the program by itself; nothing else was changed".to_owned(),
            trial: Trial { possible: true, how: "beside the launch, in the lab".to_owned() },
            treatment: Treatment::PreloadPlan { file: file.to_owned(), sha256: self.sha256() },
        }
    }
}
