//! Limits for pipelines, and who breaks them. Pure but for one module: text, numbers and tables in, verdicts out.
//!
//! Owns the budget file ([`file`]), the rules by which a limit is kept or exceeded ([`verdict`]), the files, processes and paths that
//! are responsible for what a limit is about ([`responsible`]), and what is said of a limit ([`outcome`], schema `slowpath-check/1`) and of all of them together ([`checked`]). [`launched`] has
//! the launches made for it, and files read as the user.
//!
//! Leaves to others: making launches and recordings (`verify`), opening files in sandboxes (`session`), what rows mean (`analysis`), the screen and the exit
//! code (the command).

pub mod checked;
pub mod file;
pub mod launched;
pub mod outcome;
pub mod responsible;
pub mod verdict;

pub use file::{Budget, Limit, Subject, parse};
pub use outcome::{Check, CheckedLimit};
pub use verdict::{Judged, Times, Verdict};
