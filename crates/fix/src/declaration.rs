//! What a fix is before it is made for a program: its name and what people should know of it.
//!
//! Each fix declares itself in its own file; [`crate::ALL`] lists them. `slowpath explain` and the reference page come from here.

/// A fix, declared.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name in JSON (`preload_plan`).
    pub name: &'static str,
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
}
