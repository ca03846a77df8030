//! Values of JSON fields that can have a few only, explained from the schemas of the documents that commands print.
//!
//! Owns which enumerations there are and where they are printed. The words are those of the types, whose comments the schemas carry
//! ([`walk`]); those of documents whose types this crate does not see stand in [`elsewhere`]. A test of the repository compares all with
//! `docs/schemas`. Enumerations with a kind of their own (verdicts, metrics) are explained there in full.

mod elsewhere;
pub(crate) mod enumeration;
mod walk;

use crate::json_documents;
use enumeration::{JsonEnumeration, listed};
use serde_json::Value;
use std::sync::LazyLock;

/// All of them, each once. Types do not change while the program runs.
static ALL: LazyLock<Vec<JsonEnumeration>> = LazyLock::new(of_documents);

/// All of them, each once.
pub(crate) fn all() -> &'static [JsonEnumeration] {
    &ALL
}

fn of_documents() -> Vec<JsonEnumeration> {
    let mut all: Vec<JsonEnumeration> = Vec::new();
    let printed = json_documents::schemas().iter().flat_map(|(file, schema)| walk::enumerations(file, schema));
    for one in printed.chain(elsewhere::all()) {
        match all.iter_mut().find(|known| known.about == one.about && known.values == one.values) {
            Some(known) => {
                known.fields.extend(one.fields);
                known.documents.extend(one.documents);
            }
            None => all.push(one),
        }
    }
    // A field that always has the same one of several values says nothing new of it.
    let several: Vec<JsonEnumeration> = all.iter().filter(|one| one.values.len() > 1).cloned().collect();
    all.retain(|one| one.values.len() > 1 || !several.iter().any(|other| covers(other, one)));
    all
}

/// Whether all values of `one` are among those of `other`, in a field of the same name.
fn covers(other: &JsonEnumeration, one: &JsonEnumeration) -> bool {
    let has = |value: &String| other.meaning(value).is_some();
    !other.fields.is_disjoint(&one.fields) && one.values.iter().all(|(value, _)| has(value))
}

/// The values in a schema of `docs/schemas` that `explain` says nothing of, each with its fields.
pub fn unexplained(document: &str, schema: &Value) -> Vec<String> {
    let is_unknown = |one: &JsonEnumeration| !all().iter().any(|other| covers(other, one));
    let missing = walk::enumerations(document, schema).into_iter().filter(is_unknown);
    missing.map(|one| format!("{document}: {} of {}", values(&one), listed(&one.fields))).collect()
}

fn values(one: &JsonEnumeration) -> String {
    one.values.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_value_that_commands_print_says_itself_what_it_means() {
        assert!(all().len() > 50, "{}", all().len());
        for one in all() {
            for (value, _) in &one.values {
                assert!(
                    one.meaning(value).is_some(),
                    "{value} of {:?} in {:?} has no comment",
                    one.fields,
                    one.documents
                );
            }
        }
    }

    #[test]
    fn a_value_that_nothing_explains_is_found_and_others_are_not() {
        let unit = json!({"properties": {"unit": {"const": "ms"}, "schema": {"const": "slowpath-explain/1"}}});
        assert_eq!(unexplained("x.json", &unit), [""; 0]);
        let other = json!({"properties": {"unit": {"enum": ["ms", "fortnights"]}}});
        assert_eq!(unexplained("x.json", &other), ["x.json: ms, fortnights of `unit`"]);
        let field = json!({"$defs": {"Colour": {"oneOf": [{"const": "red", "description": "As blood."}]}},
            "properties": {"colour": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}]}}});
        assert_eq!(unexplained("x.json", &field), ["x.json: red of `colour`"]);
    }

    #[test]
    fn titles_and_places_are_short() {
        let unit = all().iter().find(|one| one.fields.contains("unit")).unwrap();
        assert!(unit.printed_as().contains(" more, of docs/schemas"), "{}", unit.printed_as());
        for one in all() {
            let title = one.title();
            assert!(!title.is_empty() && title.chars().count() <= 100, "{title}");
        }
    }
}
