//! Every name that `--json` can print is explained: values of the schemas, which are published, one by one.

use serde_json::Value;
use slowpath_house::root;
use slowpath_report::explain::{self, Explanation, NameKind};
use std::collections::BTreeSet;

#[test]
fn every_value_that_a_published_schema_allows_is_explained() {
    let mut documents = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(root().join("docs/schemas")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let schema = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        wrong.extend(explain::unexplained(&name, &schema));
        wrong.extend(unexplained_document(&name, &schema));
        documents += 1;
    }
    assert!(documents > 50, "{documents} schemas");
    assert!(wrong.is_empty(), "give the variants comments:\n{}", wrong.join("\n"));
}

/// What is wrong with the field `schema` of a document: it has one value, which is explained with the file that says its fields.
fn unexplained_document(file: &str, schema: &Value) -> Option<String> {
    let field = schema.pointer("/properties/schema")?;
    let Some(name) = field.get("const").or_else(|| field.pointer("/enum/0")).and_then(Value::as_str) else {
        return Some(format!("{file}: `schema` may be anything"));
    };
    let says_fields =
        |one: &Explanation| one.paragraphs.iter().any(|paragraph| paragraph.text.ends_with(&format!("/{file}")));
    let found = explain::named(name);
    let is_explained = found.iter().any(|one| one.kind == NameKind::JsonDocument && says_fields(one));
    (!is_explained).then(|| format!("{file}: {name} is not explained"))
}

#[test]
fn each_kind_of_name_has_names_and_a_page_of_its_own() {
    let pages: BTreeSet<&str> = NameKind::ALL.iter().map(|kind| kind.page()).collect();
    assert_eq!(pages.len(), NameKind::ALL.len());
    let all = explain::all();
    for kind in NameKind::ALL {
        assert!(all.iter().any(|one| one.kind == kind), "{kind:?}");
    }
}
