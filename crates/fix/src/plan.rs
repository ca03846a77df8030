//! What a fix is, before anybody tries it.
//!
//! Owns [`FixPlan`]: what changes, at which privilege, with which side effects and security cost, how it is undone and
//! whether slowpath can try it. Leaves trying it to `verify` and the artifact (a preload plan) to its own module.

use crate::treatment::Treatment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a change touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Only the launch that is made with it.
    Launch,
    /// The program, for everybody who runs it.
    Source,
    /// The machine, for every program.
    Machine,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What is changed: a kernel parameter, a file, the launch's command.
    pub what: String,
    /// Value before, where there is one and it is known.
    pub from: Option<String>,
    /// Value after.
    pub to: String,
}

/// Privilege that a fix needs when it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// That of the user who starts the program.
    User,
    /// Root.
    Root,
}

/// Whether slowpath can try a fix by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// True when it can.
    pub possible: bool,
    /// How it is tried, or why it cannot be.
    pub how: String,
}

/// A fix, described before it is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixPlan {
    /// Kind of fix (`preload_plan`, `allocator_tunables`).
    pub fix: String,
    /// Name of this plan among others of its kind (`readahead_size 512`); the name of its arm.
    pub name: String,
    /// One line for the reader.
    pub title: String,
    /// Exactly what it changes.
    pub changes: Vec<Change>,
    /// What the changes touch.
    pub scope: Scope,
    /// Privilege to apply it.
    pub privilege: Privilege,
    /// What else happens.
    pub side_effects: Vec<String>,
    /// What it costs as long as it is applied: memory, disk, work at each start.
    pub price: String,
    /// What it costs in security; `none` with the reason where it costs nothing.
    pub security_cost: String,
    /// How it is undone.
    pub undo: String,
    /// Whether it can be tried.
    pub trial: Trial,
    /// What a launch with it has, in a trial and where it is applied. A file of an older version has none.
    #[serde(default)]
    pub treatment: Treatment,
}

impl FixPlan {
    /// What launches of a trial have: the treatment where slowpath can try it, else nothing.
    pub fn tried(&self) -> &Treatment {
        if self.trial.possible { &self.treatment } else { &Treatment::None }
    }
}
