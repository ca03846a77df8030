//! What an audit says of one artifact.

use crate::access::{Access, Change, Denial, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Quantity;
use std::path::Path;

/// Whether a process of the user can use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is there, and the user may not read it.
    Unreadable,
    /// It may be read, and does not fit what it was made from.
    Stale,
    /// It should be there and is not.
    Missing,
    /// It cannot be decided from here.
    Unknown,
    /// It may be read and fits.
    Usable,
}

impl State {
    /// All, the ones to act on first.
    pub const ALL: [Self; 5] = [Self::Unreadable, Self::Stale, Self::Missing, Self::Unknown, Self::Usable];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Stale => "stale",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Usable => "usable",
        }
    }
}

/// The first rule that denies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeniedBy {
    /// The directory, link or file whose rule it is.
    pub path: String,
    /// What was asked of it.
    pub access: Access,
    /// The rule.
    pub rule: Rule,
    /// The rule in words.
    pub words: String,
}

impl From<&Denial> for DeniedBy {
    fn from(denial: &Denial) -> Self {
        let words = denial.rule.words(denial.access);
        Self { path: text(&denial.path), access: denial.access, rule: denial.rule, words }
    }
}

/// One artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Its path, without symbolic links. Bytes that are no UTF-8 are shown as U+FFFD.
    pub path: String,
    /// Its family (`python_bytecode`).
    pub family: String,
    /// Whether it can be used.
    pub state: State,
    /// The user it was decided for.
    pub uid: u32,
    /// Who denies, where it is unreadable.
    pub denied_by: Option<DeniedBy>,
    /// The smallest change of permissions that would allow, as commands of a shell; `null` where none can or none is needed.
    pub change: Option<String>,
    /// Why it is stale, missing or unknown.
    pub reason: Option<String>,
    /// What its absence costs; `null`, as no launch was recorded.
    pub cost: Option<Quantity>,
}

impl Artifact {
    /// About how many bytes it takes as JSON: its texts, and the names of its fields.
    pub(super) fn text_bytes(&self) -> usize {
        const FIELDS: usize = 130;
        const DENIER: usize = 100;
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let denier = self.denied_by.as_ref().map_or(0, |denied_by| denied_by.path.len() + DENIER);
        FIELDS + self.path.len() + denier + length(&self.change) + length(&self.reason)
    }
}

/// Commands, to be run one after the other.
pub(super) fn commands(changes: &[Change]) -> String {
    changes.iter().map(Change::command).collect::<Vec<_>>().join(" && ")
}

/// A path as JSON can hold it.
pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
