//! What a fix does to a launch: what a trial gives to its launches, and what is kept where the fix is applied. One value for
//! both, so that what is applied is what was tried.

use crate::word::Word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What is done to a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Treatment {
    /// Nothing that slowpath can do by itself.
    #[default]
    None,
    /// Variables of its environment, instead of what it has under their names.
    Environment {
        /// Each with its whole value.
        variables: BTreeMap<String, Word>,
    },
    /// A preload plan is replayed beside it.
    PreloadPlan {
        /// Name of the plan's file in the directory of the diagnosis.
        file: String,
    },
    /// Another setting of the device that holds the program's files.
    Readahead {
        /// How much is read at a demand, in KiB.
        kib: u64,
    },
    /// A change of the program's source.
    Source {
        /// Where.
        place: String,
    },
}

impl Treatment {
    /// One variable.
    pub fn variable(name: &str, value: impl Into<OsString>) -> Self {
        let value = Word::from(value.into().as_os_str());
        Self::Environment { variables: BTreeMap::from([(name.to_owned(), value)]) }
    }

    /// Variables of a treated launch; none where it is treated otherwise.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        match self {
            Self::Environment { variables } => {
                variables.iter().map(|(name, value)| (name.into(), value.to_os_string())).collect()
            }
            _ => Vec::new(),
        }
    }
}
