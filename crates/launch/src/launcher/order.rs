//! What main asks of a launcher: one launch.

use serde::{Deserialize, Serialize};

use crate::LaunchSpec;

/// What main asks for: stands in a sealed memory file that the guardian inherits. The next one comes through the channel when the
/// launch before has ended ([`crate::wire::ToLauncher::Again`]).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order<Spec = LaunchSpec> {
    pub(crate) spec: Spec,
    /// The HTML of `browser:FILE`.
    pub(crate) page: Option<String>,
    /// Main's pid.
    pub(crate) main: i32,
    /// Whether main follows the launch: it is notified of every step, and releases the target.
    pub(crate) follows: bool,
    /// Whether the launcher waits for another order after this launch.
    pub(crate) stays: bool,
}
