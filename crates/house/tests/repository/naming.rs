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
    // Nobody reads or writes what is generated.
    let is_written = |path: &&PathBuf| !path.starts_with("report-ui/src/generated");
    let wrong: Vec<_> = sources()
        .iter()
        .filter(is_written)
        .filter_map(|path| {
            // What is no text is no source.
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            naming::length_problem(path, &text)
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// An example in a comment is compiled by rustdoc alone, which `make test` does not run: what shows code says that it is text.
#[test]
fn no_comment_holds_an_example_that_nothing_compiles() {
    let comment = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).map(|text| text.trim().to_owned())
    };
    let mut wrong = Vec::new();
    for path in sources().iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let fences = text.lines().filter_map(comment).filter_map(|line| line.strip_prefix("```").map(str::to_owned));
        // Every other one ends what the one before began.
        wrong.extend(
            fences
                .step_by(2)
                .filter(|language| !["text", "toml"].contains(&language.as_str()))
                .map(|_| path.display().to_string()),
        );
    }
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

#[test]
fn limits_are_set_only_where_it_is_known_what_targets_inherit() {
    // A limit that the command's own process raises stands in `RAISED` of crates/session/src/target.rs.
    let known = [
        // In the child that becomes the target.
        "crates/launch/src/limits.rs",
        // In a worker, and in the child that reads a preload plan beside a command.
        "crates/process/src/sandbox/limits.rs",
        "crates/fix/src/preload_plan/beside.rs",
        // In the child that becomes the adb client.
        "crates/android/src/adb/process.rs",
        // In the command's own process: descriptors and message queues.
        "crates/ipc/src/limits.rs",
    ];
    let sets = |path: &PathBuf| {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        code.contains("setrlimit(") || code.contains("prlimit(")
    };
    let is_source = |path: &PathBuf| path.to_str().is_some_and(|path| path.contains("/src/") && path.ends_with(".rs"));
    let mut found: Vec<PathBuf> = sources().into_iter().filter(|path| is_source(path) && sets(path)).collect();
    let mut known: Vec<PathBuf> = known.iter().map(PathBuf::from).collect();
    found.sort();
    known.sort();
    assert_eq!(found, known);
}
