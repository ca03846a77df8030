//! What works on this machine, what does not, why, and what would change that.

use crate::lab_session::LAB;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_capture::machine::{self, Check, Need};
use slowpath_lab::{availability, leftovers};
use slowpath_session::fresh_directory;
use slowpath_tables::Unavailable;
use std::io;
use std::path::PathBuf;

/// Version of what `slowpath doctor --json` prints.
const SCHEMA: &str = "slowpath-doctor/1";

/// What `slowpath doctor --json` prints: what a machine can do, and what killed processes left.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Doctor {
    /// `slowpath-doctor/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Release of the kernel.
    pub kernel: String,
    /// Whether `record` works here and now.
    pub can_record: bool,
    /// Whether `lab` and `diagnose` work here and now.
    pub can_use_lab: bool,
    /// What was looked at.
    pub checks: Vec<Check>,
    /// Everything that is missing, with its remedy.
    pub unavailable: Vec<Unavailable>,
    /// What killed slowpath processes left.
    pub leftovers: Vec<String>,
    /// What `--clean` removed.
    pub removed: Vec<String>,
    /// What `--clean` could not remove, and why.
    pub not_removed: Vec<String>,
}

/// What killed slowpath processes left: what is there, or else what was removed and what could not be.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    /// Paths.
    pub found: Vec<String>,
    /// Paths.
    pub removed: Vec<String>,
    /// Paths, each with the reason.
    pub not_removed: Vec<String>,
}

impl Leftovers {
    /// What is there: labs, fresh directories, and `more` of another kind.
    pub fn here(more: Vec<PathBuf>) -> Self {
        let labs = leftovers::list().into_iter().filter(|trace| !trace.owner_alive).map(|trace| trace.path);
        let all = labs.chain(fresh_directory::leftovers()).chain(more);
        Self { found: all.map(|path| path.display().to_string()).collect(), ..Self::default() }
    }

    /// Removes what is there, after `more` of another kind was. One that stays keeps no other from being removed.
    pub fn cleaned(more: Vec<(PathBuf, io::Result<()>)>) -> Self {
        let mut left = Self::of_labs();
        left.note(fresh_directory::clean());
        left.note(more);
        left
    }

    /// Removes labs that belong to nobody alive.
    pub fn of_labs() -> Self {
        let mut left = Self::default();
        left.note(leftovers::clean().into_iter().map(|(trace, result)| (trace.path, result)));
        left
    }

    fn note(&mut self, cleaned: impl IntoIterator<Item = (PathBuf, io::Result<()>)>) {
        for (path, result) in cleaned {
            match result {
                Ok(()) => self.removed.push(path.display().to_string()),
                Err(error) => self.not_removed.push(format!("{}: {error}", path.display())),
            }
        }
    }
}

impl Doctor {
    /// Of this machine.
    pub fn of_machine(leftovers: Leftovers) -> Self {
        let facts = machine::facts();
        let checks = machine::checks(&facts);
        let lab = availability::missing();
        let can_record = machine::gaps(&checks, Need::Record).is_empty();
        Self {
            schema: SCHEMA,
            can_record,
            // What goes into a lab is seen in a recorded launch.
            can_use_lab: can_record && !lab.iter().any(|gap| gap.what == LAB),
            unavailable: checks.iter().filter_map(|check| check.gap.clone()).chain(lab).collect(),
            kernel: facts.kernel,
            checks,
            leftovers: leftovers.found,
            removed: leftovers.removed,
            not_removed: leftovers.not_removed,
        }
    }
}
