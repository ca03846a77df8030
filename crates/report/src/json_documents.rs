//! The documents of `--json`, by what their field `schema` says.
//!
//! Owns which there are. The words are those of the types, whose comments the published schemas carry; those of the Python package, whose
//! types this crate does not see, stand here. A test of the repository compares both with `docs/schemas`.

use crate::schema::PUBLISHED;
use serde_json::Value;
use std::sync::LazyLock;

/// A document.
pub(crate) struct JsonDocument {
    /// What its field `schema` says, as `slowpath-analyze/1`.
    pub(crate) schema: String,
    /// The file of its schema in `docs/schemas`.
    pub(crate) file: String,
    /// What it is.
    pub(crate) about: String,
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
        let about = schema["description"].as_str().unwrap_or_default();
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(JsonDocument { schema: name.to_owned(), file: file.clone(), about })
    };
    let of_python = |(schema, file, command): (&str, &str, &str)| JsonDocument {
        schema: schema.to_owned(),
        file: format!("{file}.json"),
        about: format!("What `slowpath {command} --json` prints."),
    };
    schemas().iter().filter_map(of_type).chain(OF_PYTHON.into_iter().map(of_python))
}
