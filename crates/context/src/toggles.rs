//! Differences that can be carried into a launch one by one, everything else equal: what differs between two contexts becomes
//! candidates, each of which a launch can have as in the one or as in the other.
//!
//! Owns what is asked of a factor's toggle ([`Toggle`]), which parts of a difference become candidates and which only follow from others
//! or stay ([`plan()`]), and the conditions of a launch for each choice ([`Prepared`]). How a factor is set stands in the factor's own file;
//! setting it is `launch`'s. Never changes what other programs of the machine have too. Leaves to others: launching, and every judgement.

mod caller;
mod contrast;
mod error;
mod groups;
mod here;
mod plan;
mod prepared;
mod setting;
#[cfg(test)]
mod tests;
mod toggle;

pub(crate) use contrast::{Contrast, DifferingPart, How, Outcome, both, or_none, words};
pub use error::ToggleError;
pub(crate) use groups::GroupFile;
pub use here::Here;
pub(crate) use here::{SETGID, SETPCAP, SETUID, SYS_ADMIN, SYS_NICE, SYS_RESOURCE};
pub use plan::{Candidate, Common, Plan, Remaining, plan};
pub use prepared::{Prepared, Side};
pub(crate) use setting::Setting;
pub(crate) use toggle::{OF_MACHINE, Toggle};
