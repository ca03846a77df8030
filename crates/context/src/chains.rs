//! Differences that follow from each other in ways that are known: what comes first, what it leads to, what that costs, and what can be
//! done about it.
//!
//! A chain is reported only where each of its links was read, in both contexts. The kernel's release is never taken as a link: what a
//! thread's own status says, counts.

mod chain;
mod filter_restricts_speculation;
mod nice_inside_sessions;
mod preloaded_library;

pub use chain::{Chain, Link, Side};
pub use filter_restricts_speculation::speculation_remedies;

use crate::snapshot::Snapshot;

/// The known chains between two contexts.
pub fn chains(a: &Snapshot, b: &Snapshot) -> Vec<Chain> {
    let each = [filter_restricts_speculation::find, preloaded_library::find, nice_inside_sessions::find];
    each.into_iter().filter_map(|find| find(a, b)).collect()
}
