//! The documents of `--json`, by what their field `schema` says.
//!
//! Owns which there are. The words are those of the types, whose comments the published schemas carry; those of the Python package, whose
//! types this crate does not see, stand here. A test of the repository compares both with `docs/schemas`.

use crate::schema::PUBLISHED;
use crate::schema_comments::{plain, title_and_rest};
use serde_json::Value;
use std::sync::LazyLock;

/// A document.
pub(crate) struct JsonDocument {
    /// What its field `schema` says, as `slowpath-analyze/1`.
    pub(crate) schema: String,
    /// The file of its schema in `docs/schemas`.
    pub(crate) file: String,
    /// What it is.
    pub(crate) title: String,
    /// What else its type says of it.
    pub(crate) rest: String,
}

/// The published schemas, each with the name of its file. Types do not change while the program runs.
static SCHEMAS: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    // A schema that was just made is JSON.
    let parsed = |text: String| serde_json::from_str(&text).unwrap_or_default();
    PUBLISHED.iter().map(|one| (format!("{}.json", one.name), parsed((one.text)()))).collect()
});

/// Documents of the Python package: what `schema` says, the file in `docs/schemas` without `.json`, and the command.
const OF_PYTHON: [(&str, &str, &str); 7] = [
    ("slowpath-fleet-compare/1", "fleet-compare", "fleet compare"),
    ("slowpath-fleet-experiment/1", "fleet-experiment", "fleet experiment"),
    ("slowpath-fleet-generate/1", "fleet-generate", "fleet generate"),
    ("slowpath-fleet-ingest/1", "fleet-ingest", "fleet ingest"),
    ("slowpath-fleet-slices/1", "fleet-slices", "fleet slices"),
    ("slowpath-fleet-watch/1", "fleet-watch", "fleet watch"),
    ("slowpath-query/1", "fleet-query", "query"),
];

/// The published schemas, each with the name of its file.
pub(crate) fn schemas() -> &'static [(String, Value)] {
    &SCHEMAS
}

/// Every document that has a field `schema`. Google Benchmark's form has none, nor has the manifest of a recording.
pub(crate) fn all() -> impl Iterator<Item = JsonDocument> {
    let of_type = |(file, schema): &(String, Value)| {
        let name = schema.pointer("/properties/schema/const")?.as_str()?;
        let about = plain(schema["description"].as_str().unwrap_or_default());
        let (title, rest) = title_and_rest(&about);
        Some(JsonDocument { schema: name.to_owned(), file: file.clone(), title, rest: rest.to_owned() })
    };
    let of_python = |(schema, file, command): (&str, &str, &str)| JsonDocument {
        schema: schema.to_owned(),
        file: format!("{file}.json"),
        title: format!("what `slowpath {command} --json` prints"),
        rest: String::new(),
    };
    schemas().iter().filter_map(of_type).chain(OF_PYTHON.into_iter().map(of_python))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_has_another_name_and_a_title() {
        let mut names: Vec<String> = all().map(|one| one.schema).collect();
        assert!(names.len() > 40, "{names:?}");
        names.sort_unstable();
        let number = names.len();
        names.dedup();
        assert_eq!(names.len(), number);
        assert!(all().all(|one| (10..=100).contains(&one.title.chars().count())));
    }
}
