//! The enumerations of a schema: named ones with the fields that hold them, and those that stand at a field.

use super::enumeration::JsonEnumeration;
use crate::schema_comments::plain;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The field that says which document it is, in which version: [`crate::json_documents`] has those.
const VERSION: &str = "schema";

/// Those of a document.
pub(super) fn enumerations(document: &str, schema: &Value) -> Vec<JsonEnumeration> {
    let mut walk = Walk::default();
    walk.node(schema, NodeContext::default());
    for (name, node) in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        walk.node(node, NodeContext { definition: Some(name), ..NodeContext::default() });
    }
    let Walk { found, holders } = walk;
    let enumeration = |one: FoundEnumeration<'_>| {
        let of_definition = one.context.definition.filter(|_| one.context.field.is_none());
        let held = of_definition.and_then(|name| holders.get(name)).into_iter().flatten();
        let fields: BTreeSet<&str> =
            if one.tags.is_empty() { held.copied().chain(one.context.field).collect() } else { one.tags };
        let values = one.values.into_iter().map(|(value, what)| (value.to_owned(), plain(what)));
        JsonEnumeration {
            about: plain(one.context.about),
            values: values.collect(),
            fields: fields.into_iter().map(str::to_owned).collect(),
            documents: BTreeSet::from([document.to_owned()]),
        }
    };
    found.into_iter().map(enumeration).collect()
}

/// Where a node stands.
#[derive(Clone, Copy, Default)]
struct NodeContext<'a> {
    /// The definition that it is part of.
    definition: Option<&'a str>,
    /// The field whose value it describes; none for the definition itself.
    field: Option<&'a str>,
    /// The nearest description.
    about: &'a str,
}

/// An enumeration.
struct FoundEnumeration<'a> {
    context: NodeContext<'a>,
    /// Fields that say which variant of a table it is.
    tags: BTreeSet<&'a str>,
    /// Each value with its description.
    values: Vec<(&'a str, &'a str)>,
}

#[derive(Default)]
struct Walk<'a> {
    found: Vec<FoundEnumeration<'a>>,
    /// The fields that refer to each definition.
    holders: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Walk<'a> {
    fn node(&mut self, node: &'a Value, context: NodeContext<'a>) {
        match node {
            Value::Array(nodes) => nodes.iter().for_each(|node| self.node(node, context)),
            Value::Object(node) => {
                let context = NodeContext { about: text(node, "description").unwrap_or(context.about), ..context };
                self.note(context, BTreeSet::new(), words(node, context.about));
                self.parts(node, context, false);
            }
            _ => {}
        }
    }

    fn note(&mut self, context: NodeContext<'a>, tags: BTreeSet<&'a str>, values: Vec<(&'a str, &'a str)>) {
        if !values.is_empty() && context.field != Some(VERSION) {
            self.found.push(FoundEnumeration { context, tags, values });
        }
    }

    /// What a node refers to and consists of; the words of a variant were noted with those of the others.
    fn parts(&mut self, node: &'a Map<String, Value>, context: NodeContext<'a>, is_variant: bool) {
        let target = text(node, "$ref").and_then(|path| path.rsplit('/').next());
        if let (Some(definition), Some(field)) = (target, context.field) {
            self.holders.entry(definition).or_default().insert(field);
        }
        for (key, part) in node {
            match (key.as_str(), part) {
                ("properties", Value::Object(fields)) => self.fields(fields, context, is_variant),
                ("oneOf", Value::Array(variants)) => self.variants(variants, context),
                ("$defs" | "const" | "enum" | "required" | "default" | "examples", _) => {}
                (_, part) => self.node(part, context),
            }
        }
    }

    fn fields(&mut self, fields: &'a Map<String, Value>, context: NodeContext<'a>, is_variant: bool) {
        for (field, node) in fields {
            if !is_variant || tag(node).is_none() {
                self.node(node, NodeContext { field: Some(field), about: "", ..context });
            }
        }
    }

    fn variants(&mut self, variants: &'a [Value], context: NodeContext<'a>) {
        let (mut tags, mut values) = (BTreeSet::new(), Vec::new());
        for variant in variants.iter().filter_map(Value::as_object) {
            values.extend(words(variant, context.about));
            let about = text(variant, "description").unwrap_or(context.about);
            let fields = variant.get("properties").and_then(Value::as_object).into_iter().flatten();
            for (field, value) in fields.filter_map(|(field, node)| Some((field, tag(node)?))) {
                tags.insert(field.as_str());
                values.push((value, about));
            }
        }
        self.note(context, tags, values);
        for variant in variants.iter().filter_map(Value::as_object) {
            self.parts(variant, context, true);
        }
    }
}

fn text<'a>(node: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    node.get(key).and_then(Value::as_str)
}

/// The only value that a field of a variant can have.
fn tag(node: &Value) -> Option<&str> {
    node.get("const").and_then(Value::as_str)
}

/// The values that a node allows by itself, each with what is said of it.
fn words<'a>(node: &'a Map<String, Value>, about: &'a str) -> Vec<(&'a str, &'a str)> {
    let about = text(node, "description").unwrap_or(about);
    let several = node.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    text(node, "const").into_iter().chain(several).map(|word| (word, about)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is chosen, the values with their meanings, the fields.
    type Seen = (String, Vec<(String, String)>, Vec<String>);

    fn of(schema: &Value) -> Vec<Seen> {
        let found = enumerations("x.json", schema).into_iter();
        found.map(|one| (one.about, one.values, one.fields.into_iter().collect())).collect()
    }

    fn values(values: &[(&str, &str)]) -> Vec<(String, String)> {
        values.iter().map(|(value, what)| ((*value).to_owned(), (*what).to_owned())).collect()
    }

    #[test]
    fn a_named_enumeration_has_the_fields_that_refer_to_it() {
        let schema = json!({
            "properties": {
                "side": {"$ref": "#/$defs/Side"},
                "sides": {"type": "array", "items": {"$ref": "#/$defs/Side"}},
            },
            "$defs": {"Side": {"description": "Which\nof [`Both`].", "oneOf": [
                {"const": "a", "description": "The first."}, {"enum": ["b", "c"], "description": "Another."}]}},
        });
        let all = values(&[("a", "The first."), ("b", "Another."), ("c", "Another.")]);
        assert_eq!(of(&schema), [("Which of `Both`.".to_owned(), all, vec!["side".to_owned(), "sides".to_owned()])]);
    }

    #[test]
    fn variants_of_a_table_are_values_of_the_field_that_tells_them_apart() {
        let schema = json!({"$defs": {"Treatment": {"description": "What is done.", "oneOf": [
            {"description": "Nothing.", "properties": {"kind": {"const": "none"}}},
            {"description": "Files.", "properties": {"kind": {"const": "files"},
                "mode": {"description": "`r` or `w`.", "enum": ["r", "w"]}}},
        ]}}});
        let kinds = values(&[("none", "Nothing."), ("files", "Files.")]);
        let modes = values(&[("r", "`r` or `w`."), ("w", "`r` or `w`.")]);
        assert_eq!(
            of(&schema),
            [
                ("What is done.".to_owned(), kinds, vec!["kind".to_owned()]),
                ("`r` or `w`.".to_owned(), modes, vec!["mode".to_owned()])
            ]
        );
    }

    #[test]
    fn the_version_of_a_document_is_no_name() {
        assert!(
            of(&json!({"properties": {"schema": {"const": "slowpath-explain/1"}, "n": {"type": "integer"}}}))
                .is_empty()
        );
    }
}
