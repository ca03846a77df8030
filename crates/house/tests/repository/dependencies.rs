//! Every dependency has its reason in `docs/dependencies.md`.

use slowpath_house::{layering, root};
use std::collections::BTreeSet;
use std::process::Command;

/// Names in back-ticks of the first column of the document's tables.
fn documented(text: &str) -> BTreeSet<String> {
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn wrong(text: &str, used: &BTreeSet<String>) -> Vec<String> {
    let documented = documented(text);
    let missing = used.difference(&documented).map(|name| format!("{name} has no row in docs/dependencies.md"));
    missing.collect()
}

#[test]
fn a_dependency_without_a_row_is_found() {
    let text = "| Crate | For |\n|---|---|\n| `a`, `b` | c `d` |\n";
    let used = ["a", "b", "d"].map(str::to_owned).into();
    assert_eq!(wrong(text, &used), ["d has no row in docs/dependencies.md"]);
}

#[test]
fn every_direct_dependency_is_explained_and_every_declared_one_is_used() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata = serde_json::from_slice(&output.stdout).unwrap();
    let used = layering::foreign(&metadata).unwrap();
    assert!(used.contains("serde"), "cargo told of no dependency: {used:?}");

    let npm: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(root().join("report-ui/package.json")).unwrap()).unwrap();
    let packages = ["dependencies", "devDependencies"].iter().filter_map(|kind| npm[kind].as_object());
    let all: BTreeSet<String> = packages.flat_map(|map| map.keys().cloned()).chain(used.iter().cloned()).collect();

    let mut wrong = wrong(&std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap(), &all);
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let declared = manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .filter(|name| !name.starts_with("slowpath-") && !name.starts_with('#'));
    wrong.extend(
        declared.filter(|name| !used.contains(*name)).map(|name| format!("Cargo.toml declares {name}, unused")),
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
