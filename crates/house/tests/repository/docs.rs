//! Documents that are generated from types must be what the types say. `make schemas` writes them anew.

use slowpath_house::{files_below, reference, root};
use slowpath_report::explain::{self, NameKind};
use slowpath_report::schema::PUBLISHED;
use std::collections::BTreeSet;
use std::path::Path;

/// Documents to compare: path and text.
fn generated() -> Vec<(String, String)> {
    let mut all: Vec<_> = PUBLISHED.iter().map(|schema| (schema.path(), (schema.text)())).collect();
    all.push(("docs/reference/recording-format.md".to_owned(), reference::recording_format()));
    let pages = NameKind::ALL.map(|kind| (format!("docs/reference/{}.md", kind.page()), explain::reference(kind)));
    all.extend(pages);
    all
}

#[test]
fn generated_documents_are_what_the_types_say() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let mut wrong = Vec::new();
    for (name, text) in generated() {
        let path = root().join(&name);
        if update {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
            std::fs::write(&path, text).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "not up to date, run `make schemas`: {}", wrong.join(", "));
}

#[test]
fn no_schema_is_published_that_no_type_stands_behind() {
    let expected: Vec<String> = generated().into_iter().map(|(name, _)| name).collect();
    for folder in ["docs/schemas", "docs/reference"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            // Those of the Python package are compared by its own tests.
            assert!(
                expected.contains(&name) || name.starts_with("docs/schemas/fleet-"),
                "{name} is generated from nothing"
            );
        }
    }
}

/// Forms of files that nobody but Slowpath reads.
const OWN_FILES: [&str; 4] =
    ["slowpath-diagnoses-made/1", "slowpath-fix-journal/1", "slowpath-guard-state/1", "slowpath-preload-plan/1"];

/// The names of forms (`slowpath-launch/1`) that stand between such marks.
fn forms(text: &str, mark: char) -> BTreeSet<String> {
    let is_form = |word: &&str| {
        word.strip_prefix("slowpath-").and_then(|rest| rest.split_once('/')).is_some_and(|(name, version)| {
            let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
            !name.is_empty() && name.chars().all(is_name) && version.parse::<u32>().is_ok()
        })
    };
    text.split(mark).filter(is_form).map(str::to_owned).collect()
}

#[test]
fn every_form_that_a_result_names_has_a_published_schema() {
    // Those of the Python package among them.
    let folder = root().join("docs/schemas");
    let published: Vec<String> =
        files_below(&folder).into_iter().map(|path| std::fs::read_to_string(folder.join(path)).unwrap()).collect();
    let published: BTreeSet<String> =
        published.iter().flat_map(|text| ['`', '"'].map(|mark| forms(text, mark))).flatten().collect();
    let mut named = BTreeSet::new();
    let crates = root().join("crates");
    for path in files_below(&crates) {
        let is_source = path.extension().is_some_and(|extension| extension == "rs")
            && path.components().nth(1).is_some_and(|folder| folder.as_os_str() == "src");
        if is_source {
            named.extend(forms(&std::fs::read_to_string(crates.join(path)).unwrap(), '"'));
        }
    }
    assert!(named.len() > 40, "{named:?}");
    let missing: Vec<_> =
        named.iter().filter(|name| !published.contains(*name) && !OWN_FILES.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "add their types to slowpath_report::schema::PUBLISHED: {missing:?}");
}

/// A word in backticks that long is a test's name there.
const SHORTEST_TEST: usize = 25;

#[test]
fn every_test_that_docs_security_names_is_there() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let is_name = |word: &&str| {
        word.len() >= SHORTEST_TEST && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let named: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(is_name).collect();
    assert!(named.len() > 50, "{named:?}");
    let mut sources = String::new();
    for path in ["crates", "fleet/tests"].iter().flat_map(|folder| {
        files_below(&root().join(folder)).into_iter().map(move |path| root().join(folder).join(path))
    }) {
        if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            sources.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    let is_missing = |name: &&&str| !["fn", "def"].iter().any(|word| sources.contains(&format!("{word} {name}(")));
    let missing: Vec<_> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}
