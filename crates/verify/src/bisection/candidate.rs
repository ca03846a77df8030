//! What a bisection chooses among: differences of two contexts, as far as the search must know them.

use slowpath_launch::Metric;

/// How much a candidate is known to matter: what it costs in time is spent on what is expected most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expected {
    /// It makes programs slower by a tenth and more.
    Heavy,
    /// It costs some programs some percent.
    Moderate,
    /// Little, or nothing is known: it is tried together with others like it first.
    Little,
}

/// A candidate, as far as the search must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How much it is known to matter.
    pub expected: Expected,
    /// Counters of its mechanism: any of them shows it.
    pub counters: Vec<Metric>,
}
