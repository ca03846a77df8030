//! What a fix is before it is made for a program: its name and what people should know of it.
//!
//! Each fix declares itself in its own file; [`crate::ALL`] lists them. `slowpath explain` and the reference page come from here.

use crate::case::Case;
use crate::proposal::Proposal;

/// A fix, declared.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name in JSON (`preload_plan`).
    pub name: &'static str,
    /// Names that it had in earlier versions, the latest first.
    pub former: &'static [&'static str],
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it changes.
    pub what: &'static str,
    /// Why that helps.
    pub why: &'static str,
    /// What it costs as long as it is applied.
    pub price: &'static str,
    /// How it is applied by hand, and undone.
    pub by_hand: &'static str,
    /// Whether slowpath tries it by itself, and how.
    pub trial: &'static str,
    /// What makes it for findings that name it; `None` for one that needs a lab, which whoever has one makes.
    pub propose: Option<fn(&Case<'_>) -> Vec<Proposal>>,
}
