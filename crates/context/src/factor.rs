//! What a factor of an execution context is: something that can make the same code faster or slower, and can be read.

use crate::reading::{Reading, Value};
use crate::remedy::Remedy;
use crate::task_files::TaskFiles;
use crate::toggles::Toggle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose a factor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Each thread has its own.
    Thread,
    /// The threads of a process have it in common.
    Process,
    /// All processes of a machine have it in common.
    Machine,
}

/// How much a difference is known to matter, the most first. What it costs a given program, only a measurement shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Known to make programs slower by a tenth and more.
    Heavy,
    /// Known to cost some programs some percent.
    Moderate,
    /// Known to cost little, or only under special conditions.
    Light,
    /// Nothing is known of a cost.
    Unknown,
    /// Known to cost nothing by itself.
    Harmless,
}

/// What is known of the cost of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    /// How much it is known to matter.
    pub weight: Weight,
    /// What it costs, and whom.
    pub cost: String,
    /// Where that is known from.
    pub source: String,
}

impl Known {
    /// What is known.
    pub fn new(weight: Weight, cost: impl Into<String>, source: impl Into<String>) -> Self {
        Self { weight, cost: cost.into(), source: source.into() }
    }
}

/// Names of earlier versions, which contexts that they saved still have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Former {
    /// Of the factor, the latest first.
    pub names: &'static [&'static str],
    /// Of parts of its value, each with the name of today.
    pub parts: &'static [(&'static str, &'static str)],
    /// Of ends of a part's text: the part by its name of today, its former end, and that of today.
    pub ends: &'static [(&'static str, &'static str, &'static str)],
}

impl Former {
    /// Neither it nor a part of it had another name.
    pub const NONE: Self = Self { names: &[], parts: &[], ends: &[] };
}

/// How long a value says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// As long as nobody changes it.
    Always,
    /// Until the machine is started again: numbers that the kernel gives out, which do not compare with those of another boot.
    Boot,
    /// It changes by itself, so that two looks at one process differ: shown, and compared as a state of the moment.
    Moment,
}

/// What can be done about a difference that makes a program slower, the least price first: security, energy, fairness, or what it was set
/// for. Of differences that follow from each other, [`crate::chains`] say it.
#[derive(Clone, Copy)]
pub(crate) enum Remedies {
    /// Whichever part differs: what, and its price.
    Of(&'static [(&'static str, &'static str)]),
    /// By the part that differs; by an empty name where none is named.
    OfPart(fn(&str) -> Vec<Remedy>),
}

/// One factor.
#[derive(Clone, Copy)]
pub struct Factor {
    /// Its name in JSON and on the command line (`seccomp`).
    pub name: &'static str,
    /// What earlier versions called it and its parts.
    pub(crate) former: Former,
    /// What it is, for people.
    pub title: &'static str,
    /// What it is in full, in sentences.
    pub what: &'static str,
    /// Why a difference can cost time, and how much is known of that. [`Factor::known`] says it of two values.
    pub why: &'static str,
    /// The command that shows it without Slowpath; PID is a process's, or a thread's.
    pub by_hand: &'static str,
    /// Whose it is.
    pub scope: Scope,
    /// How long a value says the same.
    pub lasts: Lasts,
    /// Reads it.
    pub read: fn(&TaskFiles<'_>) -> Reading,
    /// What is known of the cost of the difference between two values that differ.
    pub known: fn(&Value, &Value) -> Known,
    /// What can be done about a difference.
    pub(crate) remedies: Remedies,
    /// How a launch gets another value, or why none does.
    pub(crate) toggle: Toggle,
}

impl Factor {
    /// Names that it had in earlier versions, the latest first.
    pub fn former_names(&self) -> &'static [&'static str] {
        self.former.names
    }

    /// What can be done about a part, the least price first; `name` is the factor's, with the part behind it where there is one.
    pub fn remedies(&self, name: &str) -> Vec<Remedy> {
        match self.remedies {
            Remedies::Of(known) => known.iter().map(|(what, price)| Remedy::new(*what, *price)).collect(),
            Remedies::OfPart(of) => of(name.strip_prefix(self.name).unwrap_or_default().trim()),
        }
    }

    /// Why no launch ever gets another value; `None` where one may.
    pub fn never_set(&self) -> Option<&'static str> {
        match self.toggle {
            Toggle::Never(why) => Some(why),
            Toggle::Parts(_) => None,
        }
    }
}

impl std::fmt::Debug for Factor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}
