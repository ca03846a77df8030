//! A name and what it means, as `explain` prints it and its schema says it.

use super::kind::NameKind;
use schemars::JsonSchema;
use serde::Serialize;

/// Schema of what `explain --json` prints.
pub const EXPLAIN_SCHEMA: &str = "slowpath-explain/1";

/// A paragraph of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Paragraph {
    /// What it is about (`what it is`).
    pub heading: &'static str,
    /// Its text.
    pub text: String,
}

/// A name and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Explanation {
    /// What it stands for.
    pub kind: NameKind,
    /// The name as JSON has it.
    pub name: String,
    /// Names that it had in earlier versions; left out where it had no other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former_names: Vec<&'static str>,
    /// What it is, in a few words.
    pub title: String,
    /// The rest.
    pub paragraphs: Vec<Paragraph>,
}

/// Heading of a name as screens have it, where JSON has another.
pub(crate) const ON_SCREENS: &str = "on screens";

impl Explanation {
    /// The name as screens have it.
    pub(super) fn shown(&self) -> &str {
        let shown = self.paragraphs.iter().find(|one| one.heading == ON_SCREENS);
        shown.map_or(&self.name, |one| &one.text)
    }

    /// With what it is called now before the rest, where a name of earlier versions is meant; else `None`.
    pub(super) fn for_former(mut self, is_meant: impl Fn(&str) -> bool) -> Option<Self> {
        let former = self.former_names.iter().find(|name| is_meant(name))?;
        let text = format!("{former} is called {} now", self.name);
        self.paragraphs.insert(0, Paragraph { heading: "renamed", text });
        Some(self)
    }
}

/// What `explain --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Explanations {
    /// `slowpath-explain/1`.
    #[schemars(extend("const" = EXPLAIN_SCHEMA))]
    pub schema: &'static str,
    /// The names that were asked for, or all.
    pub names: Vec<Explanation>,
}
