//! Names, lengths and purity of this repository's files.

use slowpath_house::{files_below, naming, purity, root};
use std::path::{Path, PathBuf};

fn sources() -> Vec<PathBuf> {
    let found: Vec<PathBuf> =
        ["crates", "report-ui", "scripts", "bench", "cases", "fleet", "fuzz/src", "fuzz/fuzz_targets"]
            .iter()
            .filter(|folder| root().join(folder).is_dir())
            .flat_map(|folder| files_below(&root().join(folder)).into_iter().map(|path| Path::new(folder).join(path)))
            .collect();
    assert!(found.len() > 100, "only {} files found: the search is broken", found.len());
    found
}

#[test]
fn no_file_folder_or_crate_has_a_name_that_says_nothing() {
    let wrong: Vec<_> = sources().iter().filter_map(|path| naming::name_problem(path)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_source_file_is_longer_than_the_limit() {
    let wrong: Vec<_> = sources()
        .iter()
        .filter_map(|path| {
            // What is no text is no source.
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            naming::length_problem(path, &text)
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn analysis_and_experiment_touch_nothing_of_the_machine() {
    let mut wrong = Vec::new();
    for name in purity::PURE_CRATES {
        let folder = root().join("crates").join(name).join("src");
        for path in files_below(&folder) {
            // A module of its own that only tests compile: `#[cfg(test)] mod x_tests;`.
            let only_tests = path.to_str().is_some_and(|path| path.ends_with("tests.rs") || path.contains("tests/"));
            if only_tests {
                continue;
            }
            let text = std::fs::read_to_string(folder.join(&path)).unwrap();
            for (line, word) in purity::impure_lines(&text) {
                wrong.push(format!("crates/{name}/src/{}:{line}: {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
