//! Documents that are generated from types must be what the types say. `make schemas` writes them anew.

use slowpath_house::{files_below, reference, root};
use slowpath_report::explain::{self, NameKind};
use std::path::Path;

/// Schemas of types that the command itself prints; `slowpath-cli` compares them, being a program and no library.
const PRINTED_BY_COMMANDS: [&str; 39] = [
    "android-audit",
    "android-collect",
    "android-launch",
    "android-repair",
    "android-startup",
    "artifacts-audit",
    "guard-line",
    "doctor",
    "error",
    "record",
    "lab-run",
    "launch-ladder",
    "launch-selftest",
    "launch-children",
    "check",
    "fix-apply",
    "fix-list",
    "fix-show",
    "fix-undo",
    "import",
    "ipc-compare",
    "ipc-doctor",
    "ipc-latency",
    "ipc-pool",
    "ipc-throughput",
    "lab-list",
    "layout-order",
    "layout-repack",
    "layout-score",
    "layout-trace",
    "layout-traced",
    "layout-trial",
    "layout-why",
    "preload-check",
    "preload-replay",
    "zygote-advise",
    "zygote-serve",
    "zygote-spawn",
    "zygote-status",
];

/// Documents to compare: path and text.
fn generated() -> Vec<(String, String)> {
    let schemas = slowpath_report::schema::schemas();
    let mut all: Vec<_> = schemas.into_iter().map(|(name, text)| (format!("docs/schemas/{name}"), text)).collect();
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
    let mut expected: Vec<String> = generated().into_iter().map(|(name, _)| name).collect();
    expected.extend(PRINTED_BY_COMMANDS.iter().map(|name| format!("docs/schemas/{name}.json")));
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
