//! What findings look at: launches, and what a training launch demanded.

use crate::io::demand::{Demand, NeededUnknown};
use crate::launch_facts::LaunchFacts;

/// What findings look at.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Launches of one command under the same conditions.
    pub launches: &'a [LaunchFacts<'a>],
    /// What a training launch of the command demanded, or why that is not known.
    pub needed: Result<&'a Demand, NeededUnknown>,
}
