//! The program that replays a plan beside a command, and the words it is given.
//!
//! Owns that choice: `slowpath-preload`, where it stands beside slowpath, for it is a fraction of slowpath's size, and is read first at
//! each cold start; else slowpath itself.

use std::path::{Path, PathBuf};

/// Name of the small program.
const SMALL: &str = "slowpath-preload";

/// The begin of a command line that replays a plan; the plan, `--` and the command follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayProgram {
    /// The program, absolute.
    pub path: PathBuf,
    /// Its first words, which no shell and no desktop takes for more than words.
    pub words: &'static [&'static str],
}

impl ReplayProgram {
    /// Slowpath itself.
    pub fn slowpath(path: &Path) -> Self {
        Self { path: path.to_owned(), words: &["preload", "run"] }
    }

    /// The one to use where slowpath is installed at `slowpath`.
    pub fn installed_with(slowpath: &Path) -> Self {
        let small = slowpath.with_file_name(SMALL);
        if small.is_file() { Self { path: small, words: &[] } } else { Self::slowpath(slowpath) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_program_is_used_where_it_stands_beside_slowpath() {
        let place = tempfile::tempdir().unwrap();
        let slowpath = place.path().join("slowpath");
        assert_eq!(ReplayProgram::installed_with(&slowpath), ReplayProgram::slowpath(&slowpath));
        let small = place.path().join(SMALL);
        std::fs::write(&small, "").unwrap();
        assert_eq!(ReplayProgram::installed_with(&slowpath), ReplayProgram { path: small, words: &[] });
    }
}
