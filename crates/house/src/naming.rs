//! Names that say nothing, and files that hold too much.

use std::path::Path;

/// Names under which everything ends up that has no place; none may stand as a crate, folder or file.
pub const EMPTY_WORDS: [&str; 8] = ["common", "core", "util", "utils", "shared", "misc", "helper", "helpers"];

/// Lines a source file may have. Beyond it two things live in one file.
pub const LINES: usize = 500;

/// Kinds of files that people write and read as code.
const SOURCES: [&str; 9] = ["rs", "c", "h", "ts", "mjs", "css", "py", "sh", "html"];

/// What is wrong with the name of a file, given relative to the repository.
pub fn name_problem(path: &Path) -> Option<String> {
    path.iter().find_map(|part| {
        let part = part.to_str()?;
        let stem = part.split('.').next().unwrap_or(part);
        let stem = stem.strip_prefix("slowpath-").unwrap_or(stem);
        EMPTY_WORDS.contains(&stem).then(|| format!("{}: the name `{stem}` says nothing", path.display()))
    })
}

/// What is wrong with the length of a file.
pub fn length_problem(path: &Path, text: &str) -> Option<String> {
    let source = path.extension().is_some_and(|extension| SOURCES.iter().any(|kind| extension == *kind));
    let lines = text.lines().count();
    (source && lines > LINES).then(|| format!("{}: {lines} lines, more than {LINES}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_word_is_found_as_file_folder_and_crate() {
        for bad in ["crates/a/src/utils.rs", "crates/a/src/common/x.rs", "crates/slowpath-core/src/lib.rs"] {
            assert!(name_problem(Path::new(bad)).is_some(), "{bad}");
        }
        for good in ["crates/a/src/corelist.rs", "crates/a/src/score.rs"] {
            assert_eq!(name_problem(Path::new(good)), None);
        }
    }

    #[test]
    fn the_limit_is_the_last_length_that_passes() {
        let path = Path::new("a.rs");
        assert_eq!(length_problem(path, &"x\n".repeat(LINES)), None);
        assert!(length_problem(path, &"x\n".repeat(LINES + 1)).is_some());
        assert_eq!(length_problem(Path::new("a.md"), &"x\n".repeat(LINES + 1)), None);
    }
}
