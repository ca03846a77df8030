//! The execution context of one process at one moment: every factor of the machine, of the process, and of each thread.
//!
//! Owns what is known of it. Leaves reading it to [`crate::snapshot_reader`], and earlier versions of the saved form to [`crate::saved`].

use crate::filters::Filter;
use crate::reading::Reading;
use crate::trust::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unavailable;
use std::collections::BTreeMap;

/// Version of the saved form.
pub const SCHEMA: &str = "slowpath-context/1";

/// Readings by the name of their factor.
pub type Readings = BTreeMap<String, Reading>;

/// What was read of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// `slowpath-context/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Where it is from: `this machine`, or the directory that was read.
    pub origin: String,
    /// Which start of which machine: differs from machine to machine and from boot to boot. Null where it was not saved.
    pub boot: Option<String>,
    /// The process; null where the copy does not tell.
    pub pid: Option<u32>,
    /// Its name. Foreign text.
    pub name: String,
    /// Its words. Foreign text.
    pub command: Vec<String>,
    /// Factors of the machine.
    pub machine: Readings,
    /// Factors of the process.
    pub process: Readings,
    /// Its threads, the first one first.
    pub threads: Vec<Thread>,
    /// System call filters of its first thread, the first one that was put on first; null where they were not read
    /// ([`Self::read_filters`]).
    #[serde(default)]
    pub filters: Option<Vec<Filter>>,
    /// Who says so. Never taken from a file.
    #[serde(skip)]
    pub source: Source,
}

/// What was read of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Its number; null where the copy does not tell.
    pub tid: Option<u32>,
    /// Its name. Foreign text.
    pub name: String,
    /// Its factors.
    pub factors: Readings,
}

impl Snapshot {
    /// Of a machine without `/proc`.
    pub(crate) fn nothing() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            origin: String::new(),
            boot: None,
            pid: None,
            name: String::new(),
            command: Vec::new(),
            machine: Readings::new(),
            process: Readings::new(),
            threads: Vec::new(),
            filters: None,
            source: Source::Foreign,
        }
    }

    /// The same, of a process that was started for it by a command line of the invoker's.
    #[must_use]
    pub fn launched(mut self) -> Self {
        self.source = Source::Launched;
        self
    }

    /// Its first thread.
    pub fn main_thread(&self) -> Option<&Thread> {
        self.threads.first()
    }

    /// A factor of the process as a whole, of the machine, or of its first thread.
    pub fn reading(&self, factor: &str) -> Option<&Reading> {
        let of_thread = || self.main_thread().and_then(|thread| thread.factors.get(factor));
        self.process.get(factor).or_else(|| self.machine.get(factor)).or_else(of_thread)
    }

    /// What could not be read, each once, with the remedy.
    pub fn unavailable(&self) -> Vec<Unavailable> {
        let of_threads = self.threads.iter().flat_map(|thread| &thread.factors);
        let all = self.machine.iter().chain(&self.process).chain(of_threads);
        let mut gaps: Vec<Unavailable> = all
            .filter_map(|(what, reading)| match reading {
                Reading::Unavailable { reason, remedy } => {
                    Some(Unavailable { what: what.clone(), reason: reason.clone(), remedy: remedy.clone() })
                }
                _ => None,
            })
            .collect();
        gaps.sort();
        gaps.dedup();
        gaps
    }
}
