//! The execution context of a process: what outside of its code can make the same code faster or slower.
//!
//! Owns: which factors there are and how each is read ([`factors`]), of a process that runs here or of a copy of the kernel's files
//! ([`Snapshot`]); what differs between two contexts and what is known of its cost ([`differences`]); which differences are known to
//! follow from each other ([`chains`]); which of them a launch can have one by one, and how ([`toggles`]); what a word of the user names
//! ([`named`]); the JSON of a context and of a comparison ([`printed`]). Reading changes nothing and needs no privilege for one's own
//! processes. Leaves to others: starting programs (`launch`, `session`), screens (`report`), and every measurement (`verify`,
//! `experiment`): a difference is no cause.

pub mod chains;
pub mod difference;
pub mod factor;
pub mod factors;
mod filters;
#[cfg(test)]
#[path = "../../process/tests/hanging/mod.rs"]
mod hanging;
mod kernel_files;
pub mod named;
pub mod printed;
mod reading;
mod remedy;
mod saved;
mod snapshot;
mod snapshot_reader;
mod system_calls;
mod task_files;
pub mod toggles;
mod trust;
#[cfg(test)]
mod unanswered;

pub use chains::{Chain, chains};
pub use difference::{Difference, Differences, differences};
pub use factor::{Factor, Known, Lasts, Scope, Weight};
pub use filters::Filter;
pub use reading::{Reading, Value};
pub use remedy::Remedy;
pub use saved::SavedError;
pub use snapshot::{SCHEMA, Snapshot, Thread};
pub use snapshot_reader::SnapshotError;
pub use toggles::{Candidate, Common, Here, Plan, Prepared, Remaining, ToggleError, plan};
pub use trust::Source;
