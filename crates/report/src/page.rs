//! What the HTML page of a recording or a diagnosis holds.

use crate::flame_graphs::{FlameGraphs, of_tables as flame_graphs_of};
use crate::html_ledger::{HtmlLedger, of_ledger as html_ledger_of};
use crate::side_by_side::SideBySide;
use crate::terminal::sentences;
use crate::timeline::{PageTimeline, of_tables as timeline_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::finding::Finding;
use slowpath_analysis::findings::{Observation, of_observation};
use slowpath_analysis::io::demand::{Demand, NeededUnknown};
use slowpath_analysis::io::io_map::{IoMap, io_map};
use slowpath_analysis::launch_facts::LaunchFacts;
use slowpath_analysis::printed::{ledger, looked_for, usage};
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_analysis::starts::sibling_starts::{SiblingStarts, sibling_starts};
use slowpath_analysis::time::ledger::not_asked_for;
use slowpath_diagnose::printed::Diagnosis;
use slowpath_recording::Tables;
use slowpath_tables::{Losses, Unavailable};
use std::slice::from_ref;

/// Value of [`ReportData::schema`].
pub const REPORT_SCHEMA: &str = "slowpath-report/2";

/// The machine, as the page names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// CPUs.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Bytes of a page of the kernel; `Pages` here have 4 KiB, whatever this is.
    pub page_size: u64,
    /// The storage the launch read from, in words.
    pub storage: String,
}

/// Everything the HTML page of `slowpath report` shows; the page carries it.
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
    pub ledger: Option<HtmlLedger>,
    /// Call stacks by weight; null where no row has one.
    pub flame_graphs: Option<FlameGraphs>,
    /// What every thread did when; null where of none both begin and end are known.
    #[serde(default)]
    pub timeline: Option<PageTimeline>,
    /// Launches of the same command beside each other; null where there is one, or one that is known.
    #[serde(default)]
    pub launches: Option<SideBySide>,
    /// The starts of children of one kind beside each other; null where waits were not recorded, and where no two were seen.
    #[serde(default)]
    pub siblings: Option<SiblingStarts>,
}

impl ReportData {
    /// Of a recording, made at `generated` (RFC 3339). `needed` is one of a training; `diagnosis` is what is said of a launch.
    pub fn of_tables(
        tables: &Tables,
        needed: Option<&Tables>,
        diagnosis: Option<Diagnosis>,
        generated: String,
    ) -> Self {
        let manifest = &tables.manifest;
        let facts = LaunchFacts::new(tables);
        let demand = needed.and_then(|needed| Demand::of_training(&LaunchFacts::new(needed)).ok());
        let map = io_map(&facts, demand.as_ref());
        let (ledger, no_ledger) = match ledger::of_tables(tables, &usage::of_tables(tables)) {
            // A diagnosis asks for none.
            Ok(None) if diagnosis.is_none() => (None, Some(not_asked_for())),
            Ok(ledger) => (ledger, None),
            Err(gap) => (None, Some(gap)),
        };
        // A diagnosis has its findings, which say what was predicted.
        let findings = match &diagnosis {
            Some(diagnosis) => diagnosis.findings.clone(),
            None => of_observation(&Observation { launches: from_ref(&facts), needed: Err(NeededUnknown::NoTraining) }),
        };
        let lab = manifest.devices.iter().find(|device| device.lab);
        let storage = match lab {
            Some(lab) => format!("{} image in a lab, readahead {} KiB", lab.fs, lab.read_ahead_kb.unwrap_or(0)),
            None => manifest
                .devices
                .iter()
                .find(|device| device.mount_point == "/")
                .map(|root| format!("{} on {}", root.fs, root.name))
                .unwrap_or_default(),
        };
        Self {
            schema: REPORT_SCHEMA.to_owned(),
            title: manifest.command.join(" "),
            generated,
            machine: Machine {
                kernel: manifest.host.kernel.clone(),
                cpus: manifest.host.cpus,
                memory_bytes: manifest.host.memory_bytes,
                page_size: manifest.host.page_size,
                storage,
            },
            unavailable: manifest.unavailable.iter().cloned().chain(no_ledger).collect(),
            findings,
            diagnosis,
            losses: manifest.losses.clone(),
            io_map: Some(map),
            ledger: ledger.map(html_ledger_of),
            flame_graphs: flame_graphs_of(tables, &CallStacks::new(tables)),
            timeline: timeline_of(tables),
            launches: None,
            siblings: sibling_starts(&facts),
        }
    }

    /// Of a diagnosis whose launch these recordings explain: what is drawn, and what of it was needed.
    pub fn of_diagnosis(diagnosis: &Diagnosis, shown: &Tables, needed: Option<&Tables>, generated: String) -> Self {
        let mut leading = diagnosis.leading();
        // The page draws the launches of one kind; what the others say stands below, and all of it in the file.
        if let Some(half) = diagnosis.following() {
            let kind = if half.warm { "warm" } else { "cold" };
            leading.notes.insert(0, format!("{kind} launches too were diagnosed: {}", sentences(&half)));
        }
        if let Some(text) = looked_for::sentence(&diagnosis.looked_for) {
            leading.notes.insert(0, text);
        }
        Self::of_tables(shown, needed, Some(leading), generated)
    }
}
