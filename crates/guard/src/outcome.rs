//! What a guard counts: one enumeration, from which the JSON, its schema, `explain` and the reference are made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a product's start found of one artifact for one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Processes of the user do not look for it here.
    NotNeeded,
    /// It may be read and fits.
    Usable,
    /// It is not there.
    Missing,
    /// It is there, and the user may not read it.
    Unreadable,
    /// It may be read, and does not fit what it was made from.
    Stale,
    /// It could not be used, and all users can after the repair.
    Repaired,
    /// It cannot be used, although a repair was tried at this version of the policy.
    RepairFailed,
    /// It cannot be decided from here.
    Unknown,
}

/// What of the enumeration is declared for each name.
struct Declared {
    name: &'static str,
    title: &'static str,
    what: &'static str,
    helps: &'static str,
}

impl Outcome {
    /// All, in the order in which they are documented.
    pub const ALL: [Self; 8] = [
        Self::NotNeeded,
        Self::Usable,
        Self::Missing,
        Self::Unreadable,
        Self::Stale,
        Self::Repaired,
        Self::RepairFailed,
        Self::Unknown,
    ];

    fn declared(self) -> Declared {
        let (name, title, what, helps) = match self {
            Self::NotNeeded => (
                "not_needed",
                "nobody looks for it here",
                "The policy names no user for it (`for = []`), the file of `only_if_exists` is not there, or processes of the user do \
                 not look for this file: another architecture's font cache, bytecode whose source is gone.",
                "",
            ),
            Self::Usable => (
                "usable",
                "as it should be",
                "The user may read it, and it fits what it was made from, as far as the policy asks (`fresh`).",
                "",
            ),
            Self::Missing => (
                "missing",
                "it is not there",
                "A name of its path does not exist. Each process of the user does the work again.",
                "make it: `repair` in the policy",
            ),
            Self::Unreadable => (
                "unreadable",
                "the user may not read it",
                "`denied_by` names the first file and rule that deny, `change` the smallest change that would allow.",
                "the change, or `repair` in the policy",
            ),
            Self::Stale => (
                "stale",
                "it does not fit what it was made from",
                "The user may read it; the check that the program itself makes refuses it, or its source was modified later. `reason` \
                 says which.",
                "make it again: `repair` in the policy",
            ),
            Self::Repaired => (
                "repaired",
                "the repair made it usable",
                "`found` was missing, unreadable or stale; the command of the policy ran once, and then every user of the artifact \
                 could use it.",
                "",
            ),
            Self::RepairFailed => (
                "repair_failed",
                "tried, and still not usable",
                "A repair was tried at this version of the policy, by this start or an earlier one (`repair`), and a user of the \
                 artifact still or again cannot use it. It is not tried again before the version changes. `found` says what it was at \
                 this start.",
                "run the command of the policy by hand as the user in `as`, and read its output",
            ),
            Self::Unknown => (
                "unknown",
                "it cannot be decided",
                "`reason` says what is missing: a security module's policy, a directory that the product may not search, a family whose \
                 freshness only the program can say, a user who does not exist. Never guessed, and never repaired.",
                "`fresh = \"readable\"` where only freshness cannot be decided; a guard that runs with the right to look",
            ),
        };
        Declared { name, title, what, helps }
    }

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        self.declared().name
    }

    /// What it is, in a few words.
    pub fn title(self) -> &'static str {
        self.declared().title
    }

    /// What it means, and what else of the line belongs to it.
    pub fn what(self) -> &'static str {
        self.declared().what
    }

    /// What to do about it; empty where nothing is to be done.
    pub fn helps(self) -> &'static str {
        self.declared().helps
    }

    /// Whether the product starts as fast as it should.
    pub fn is_fine(self) -> bool {
        matches!(self, Self::NotNeeded | Self::Usable | Self::Repaired)
    }

    /// Whether a repair could help: it is known not to be usable.
    pub fn calls_for_repair(self) -> bool {
        matches!(self, Self::Missing | Self::Unreadable | Self::Stale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_outcome_has_a_name_of_its_own_which_json_has_too() {
        let names: BTreeSet<&str> = Outcome::ALL.iter().map(|outcome| outcome.name()).collect();
        assert_eq!(names.len(), Outcome::ALL.len());
        for outcome in Outcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
            assert!(!outcome.title().is_empty() && !outcome.what().is_empty());
            assert_eq!(outcome.helps().is_empty(), outcome.is_fine(), "{outcome:?}");
        }
    }

    #[test]
    fn the_schema_has_every_outcome() {
        let schema = schemars::schema_for!(Outcome);
        let text = serde_json::to_string(&schema).unwrap();
        assert!(Outcome::ALL.iter().all(|outcome| text.contains(&format!("\"{}\"", outcome.name()))), "{text}");
    }
}
