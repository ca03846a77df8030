//! The values that a field of JSON can have, and where they are printed.

use crate::schema_comments::title_and_rest;
use std::collections::BTreeSet;

/// The values that a field can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonEnumeration {
    /// What is chosen by them.
    pub about: String,
    /// Each with what it means.
    pub values: Vec<(String, String)>,
    /// Names of the fields.
    pub fields: BTreeSet<String>,
    /// The documents that have such a field, by the files of their schemas.
    pub documents: BTreeSet<String>,
}

/// Documents that are named at most.
const MOST_DOCUMENTS: usize = 4;

impl JsonEnumeration {
    /// What is chosen, in a few words.
    pub(crate) fn title(&self) -> String {
        if self.values.iter().any(|(_, what)| *what == self.about) {
            return format!("a value of {}", listed(&self.fields));
        }
        title_and_rest(&self.about).0
    }

    /// Fields and documents.
    pub(crate) fn printed_as(&self) -> String {
        let shown: BTreeSet<String> = self.documents.iter().take(MOST_DOCUMENTS).cloned().collect();
        let more = match self.documents.len().saturating_sub(MOST_DOCUMENTS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{} in {}{more}, of docs/schemas", listed(&self.fields), listed(&shown))
    }

    /// What a value means, where that is said of the value itself: by a comment of its own, or by its name in the comment of the field.
    pub(super) fn meaning(&self, value: &str) -> Option<&str> {
        let (_, what) = self.values.iter().find(|(known, _)| known == value)?;
        let is_own = !what.is_empty() && (*what != self.about || what.contains(&format!("`{value}`")));
        is_own.then_some(what.as_str())
    }
}

pub(super) fn listed(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
