//! Checks of the house itself: which crate may know which, circles between files, names, the generated reference, the
//! README's commands, lines of documents and subjects of commits.
//!
//! Owns the rules, as pure functions that are tested on made-up trees; `tests/` applies them to this one. Nothing
//! depends on this crate and nothing of it is installed.

use std::path::PathBuf;

pub mod circles;
pub mod file_uses;
pub mod layering;
pub mod naming;
pub mod prose;
pub mod purity;
pub mod readme;
pub mod reference;

/// The root of the workspace this crate was compiled in.
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// All files below `dir`, relative to it and sorted, without what is built or fetched.
///
/// # Panics
/// A directory cannot be read; a check of half a tree would prove nothing.
pub fn files_below(dir: &std::path::Path) -> Vec<PathBuf> {
    const SKIPPED: [&str; 5] = ["target", "node_modules", "dist", ".git", "__pycache__"];
    fn walk(dir: &std::path::Path, found: &mut Vec<PathBuf>) {
        let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        for entry in entries {
            let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
            let kind = entry.file_type().unwrap_or_else(|error| panic!("{}: {error}", entry.path().display()));
            let name = entry.file_name();
            if kind.is_file() {
                found.push(entry.path());
            } else if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                walk(&entry.path(), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, &mut found);
    found.sort();
    found.into_iter().filter_map(|path| path.strip_prefix(dir).map(PathBuf::from).ok()).collect()
}
