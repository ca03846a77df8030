//! What the HTML page of a recording or a diagnosis holds.

use crate::flame_graphs::FlameGraphs;
use crate::page_ledger::PageLedger;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::finding::Finding;
use slowpath_analysis::io_map::IoMap;
use slowpath_diagnose::printed::Diagnosis;
use slowpath_tables::{Losses, Unavailable};

/// Value of [`ReportData::schema`].
pub const REPORT_SCHEMA: &str = "slowpath-report/2";

/// The machine, as the page names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Processors.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// The storage the launch read from, in words.
    pub storage: String,
}

/// Everything the HTML page shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportData {
    /// [`REPORT_SCHEMA`].
    #[schemars(extend("const" = REPORT_SCHEMA))]
    pub schema: String,
    /// The command line, as one string.
    pub title: String,
    /// When the report was made, RFC 3339.
    pub generated: String,
    /// The machine.
    pub machine: Machine,
    /// Null for a report on one recording.
    pub diagnosis: Option<Diagnosis>,
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// Events lost, by kind.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
    /// Reads from storage; null where none were recorded.
    pub io_map: Option<IoMap>,
    /// Where the time of threads and processes went; null where that was not recorded.
    pub ledger: Option<PageLedger>,
    /// Call stacks by weight; null where no row has one.
    pub flame_graphs: Option<FlameGraphs>,
}
