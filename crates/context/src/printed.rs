//! What `context show --json` and `context diff --json` print: one context, and two laid beside each other. Leaves screens to `report`.

use crate::chains::{Chain, chains};
use crate::difference::{Difference, differences};
use crate::snapshot::Snapshot;
use crate::toggles::Plan;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_tables::Unavailable;

/// Version of a comparison.
pub const CONTEXT_DIFF_SCHEMA: &str = "slowpath-context-diff/1";

/// What `slowpath context show --json` prints: one context, and what is missing in it. `context save` writes the same.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownContext {
    /// What was read.
    #[serde(flatten)]
    pub context: Snapshot,
    /// What could not be read.
    pub unavailable: Vec<Unavailable>,
}

impl ShownContext {
    /// Of a context.
    pub fn new(context: Snapshot) -> Self {
        Self { unavailable: context.unavailable(), context }
    }
}

/// Which contexts were compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ComparedContext {
    /// Where it is from.
    pub origin: String,
    /// The process; null where it is not known.
    pub pid: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its words.
    pub command: Vec<String>,
}

impl ComparedContext {
    /// Of a context.
    pub fn of(context: &Snapshot) -> Self {
        Self {
            origin: context.origin.clone(),
            pid: context.pid,
            name: context.name.clone(),
            command: context.command.clone(),
        }
    }
}

/// Whether a difference can be tried alone on the machine where it is reported.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownToggle {
    /// The factor, and its part.
    pub name: String,
    /// Whether a launch here can have it as in the one context or as in the other, everything else equal.
    pub here: bool,
    /// Where it can: by what it costs time. Where it cannot, or only follows from another: why.
    pub why: String,
    /// Whether a process that has it cannot give it back.
    pub irreversible: bool,
}

/// What `slowpath context diff --json` prints: two contexts laid beside each other.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContextComparison {
    /// `slowpath-context-diff/1`.
    #[schemars(extend("const" = CONTEXT_DIFF_SCHEMA))]
    pub schema: &'static str,
    /// The first.
    pub a: ComparedContext,
    /// The second.
    pub b: ComparedContext,
    /// What differs, what is known to matter most first. A difference is no cause.
    pub differences: Vec<Difference>,
    /// Differences that are known to follow from each other.
    pub chains: Vec<Chain>,
    /// Which differences can be tried alone here, and why others cannot.
    pub toggles: Vec<ShownToggle>,
    /// Factors that are the same.
    pub same: Vec<String>,
    /// Factors that could not be compared.
    pub unavailable: Vec<Unavailable>,
}

impl ContextComparison {
    /// Compares two contexts; `plan` is the one between them here.
    pub fn new(a: &Snapshot, b: &Snapshot, plan: &Plan) -> Self {
        let found = differences(a, b);
        let candidates = plan.candidates.iter().map(|one| ShownToggle {
            name: one.name.clone(),
            here: true,
            why: one.mechanism.to_owned(),
            irreversible: one.irreversible,
        });
        let others = plan.remaining.iter().chain(&plan.follows).map(|one| ShownToggle {
            name: one.name.clone(),
            here: false,
            why: one.why.clone(),
            irreversible: false,
        });
        Self {
            schema: CONTEXT_DIFF_SCHEMA,
            a: ComparedContext::of(a),
            b: ComparedContext::of(b),
            differences: found.different,
            chains: chains(a, b),
            toggles: candidates.chain(others).collect(),
            same: found.same,
            unavailable: found.unavailable,
        }
    }
}
