//! What is known of one factor: a value, or why there is none.

use crate::kernel_files::Missing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The value of a factor, in a form that can be compared part by part. All text in it is foreign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(i64),
    /// A word or a line.
    Text(String),
    /// Things without an order.
    Set(BTreeSet<String>),
    /// Named parts.
    Table(BTreeMap<String, String>),
}

impl Value {
    /// A table of named parts.
    pub fn table<K: Into<String>, V: Into<String>>(parts: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::Table(parts.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// A word.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The part with this name, of a table.
    pub fn part(&self, name: &str) -> Option<&str> {
        match self {
            Self::Table(parts) => parts.get(name).map(String::as_str),
            _ => None,
        }
    }

    /// The number, where it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The parts of a table; none of other values.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        let parts = match self {
            Self::Table(parts) => Some(parts),
            _ => None,
        };
        parts.into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// What is known of a factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Reading {
    /// It was read.
    Known {
        /// Its value.
        value: Value,
    },
    /// It is there and could not be read.
    Unavailable {
        /// Why.
        reason: String,
        /// What would change that.
        remedy: String,
    },
    /// This kernel or machine does not have it.
    Absent {
        /// Why that is known.
        reason: String,
    },
}

impl Reading {
    /// A value.
    pub fn known(value: Value) -> Self {
        Self::Known { value }
    }

    /// The kernel or the machine has none.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self::Absent { reason: reason.into() }
    }

    /// It could not be read.
    pub fn unavailable(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), remedy: remedy.into() }
    }

    /// What a file says, or why it could not be read; `absent` says what its absence means.
    pub fn of(read: Result<Value, Missing>, absent: &str) -> Self {
        match read {
            Ok(value) => Self::known(value),
            Err(missing) => Self::missing(&missing, absent),
        }
    }

    /// Why there is no value; `absent` says what the absence of the file means.
    pub fn missing(missing: &Missing, absent: &str) -> Self {
        match missing {
            Missing::Absent => Self::absent(absent),
            Missing::Denied => Self::unavailable(
                "the kernel refuses to report it for this process",
                "run it as the user of the process, or as root",
            ),
            Missing::NotSaved => {
                Self::unavailable("the saved context does not hold it", "save it again with `slowpath context save`")
            }
            Missing::Failed(reason) => Self::unavailable(reason.clone(), "none known"),
        }
    }

    /// The value, where it is known.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Known { value } => Some(value),
            _ => None,
        }
    }
}
