//! What `analyze --json` prints: what one recording shows.

use super::critical_path::{self, CriticalPath};
use super::ledger::{self, Ledger};
use super::round_trips::{self, ReplyPair};
use super::usage::{self, Usage};
use crate::finding::Finding;
use crate::findings;
use crate::launch_facts::LaunchFacts;
use crate::time::ledger::not_asked_for;
use crate::time::usage::stale_ends;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Losses, Quantity, Unavailable, Unit};

/// Value of [`Analysis::schema`].
pub const ANALYZE_SCHEMA: &str = "slowpath-analyze/1";

/// What `slowpath analyze --json` prints: what one recording shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// [`ANALYZE_SCHEMA`].
    #[schemars(extend("const" = ANALYZE_SCHEMA))]
    pub schema: String,
    /// The recorded command line; empty when running processes were recorded.
    pub command: Vec<String>,
    /// Directory of the recording.
    pub recording: String,
    /// From release of exec to ready; null where the recording holds no such launch.
    pub time_to_ready: Option<Quantity>,
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// What each process and function has of the recording, and the recording of the machine.
    #[serde(rename = "shares")]
    pub usage: Usage,
    /// Where the time of every thread went; null where that was not recorded (`unavailable` says why).
    #[serde(default)]
    pub ledger: Option<Ledger>,
    /// What the end of the recorded launch waited for, back to its begin; null without a launch, and where waits were not recorded.
    #[serde(default)]
    pub critical_path: Option<CriticalPath>,
    /// Who waited for replies of other processes, the longest waits first; of a launch those on its critical path.
    #[serde(default)]
    pub round_trips: Vec<ReplyPair>,
    /// Events lost, by kind.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
}

impl Analysis {
    /// Of a recording, called `recording`. `needed` is one of a training, where there is one.
    pub fn of_tables(recording: String, tables: &Tables, needed: Option<&Tables>) -> Self {
        let manifest = &tables.manifest;
        let launch = manifest.launch.as_ref();
        let usage = usage::of_tables(tables);
        let mut unavailable = manifest.unavailable.clone();
        unavailable.extend(stale_ends(tables));
        let found = ledger::of_tables(tables, &usage);
        let ledger = found.and_then(|found| found.ok_or_else(not_asked_for)).map_err(|gap| unavailable.push(gap)).ok();
        let critical_path = critical_path::of_tables(tables, &usage);
        let facts = LaunchFacts::new(tables);
        let time = launch.and_then(|launch| Some((launch.ready? - launch.released).as_ms()));
        Self {
            schema: ANALYZE_SCHEMA.to_owned(),
            command: manifest.command.clone(),
            recording,
            time_to_ready: time.map(|ms| Quantity::exact(ms, Unit::Ms)),
            findings: findings::of_launches(std::slice::from_ref(&facts), needed),
            usage,
            ledger,
            critical_path,
            round_trips: round_trips::of_pairs(facts.round_trips(), &facts.processes),
            losses: manifest.losses.clone(),
            unavailable,
        }
    }
}
