//! The order of this workspace, from `cargo metadata`.

use serde_json::Value;
use slowpath_house::{layering, root};
use std::process::Command;

fn metadata(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn no_crate_depends_against_the_order() {
    let (crates, edges) = layering::edges(&metadata(&["--no-deps"])).unwrap();
    assert!(crates.contains("tables") && !edges.is_empty(), "cargo told of no workspace: {crates:?}");
    let wrong = layering::violations(layering::ALLOWED, &crates, &edges);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_rules_themselves_go_one_way() {
    assert_eq!(layering::circles(layering::ALLOWED), Vec::<String>::new());
}

/// Between these lines ARCHITECTURE.md has the rules; `make schemas` writes them.
const BEFORE: &str = "Allowed dependencies, besides crates from elsewhere:\n\n";
const AFTER: &str = "\nThree edges look";

#[test]
fn the_architecture_shows_the_rules() {
    let path = root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEFORE).unwrap();
    let (block, tail) = rest.split_once(AFTER).unwrap();
    let shown = layering::shown(layering::ALLOWED);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, [head, BEFORE, &shown, AFTER, tail].concat()).unwrap();
    } else {
        assert_eq!(block, shown, "not up to date, run `make schemas`");
    }
}

/// Of elfutils only the dynamic library may be used: linked statically, its licence (LGPL-3.0-or-later OR
/// GPL-2.0-or-later) would ask for more than ours.
#[test]
fn libelf_is_linked_dynamically() {
    let metadata = metadata(&[]);
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let node = nodes.iter().find(|node| node["id"].as_str().is_some_and(|id| id.contains("#libbpf-sys@"))).unwrap();
    let features: Vec<&str> = node["features"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let wrong: Vec<_> = features.iter().filter(|f| ["vendored-libelf", "static-libelf"].contains(f)).collect();
    assert!(wrong.is_empty(), "libbpf-sys has {wrong:?}; use libbpf-rs with the feature default, not vendored");
}
