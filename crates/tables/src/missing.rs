//! What results can say to be unavailable, by name, each declared once ([`declared`]).
//!
//! Owns the names that stand in `unavailable[].what` and what they mean; whoever cannot observe something says why, and
//! what would change that.

pub mod declared;
mod named;

pub use named::{formerly_named, named};

use crate::name_pattern;
use crate::quantity::Unavailable;
use std::fmt::Display;

/// Something that can be unavailable.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name as it is printed. `<word>` stands for what differs from case to case: `probe <name>`.
    pub name: &'static str,
    /// Names of earlier versions, which their recordings still have.
    pub former: &'static [&'static str],
    /// What it is.
    pub what: &'static str,
    /// Why it may be missing.
    pub why: &'static str,
    /// What helps.
    pub helps: &'static str,
}

impl Missing {
    /// It is unavailable. For names without a `<word>`.
    pub fn because(&self, reason: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
        self.of(&[], reason, remedy)
    }

    /// This case of it is unavailable: `values` stand for the words of the name, in their order.
    pub fn of(&self, values: &[&dyn Display], reason: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
        let what = name_pattern::filled(self.name, values);
        Unavailable { what, reason: reason.into(), remedy: remedy.into() }
    }
}
