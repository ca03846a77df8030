//! The program that replays a plan beside a command, and the words it is given.
//!
//! Owns that choice: `slowpath-preload`, where it stands beside slowpath, for it is a fraction of slowpath's size, and is read first at
//! each cold start; else slowpath itself. What is kept names that program, so it has to be of whoever installed slowpath.

use slowpath_process::trusted_file;
use std::fs;
use std::os::unix::fs::MetadataExt;
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
        let is_roots = nix::unistd::geteuid().is_root();
        let is_ours = if is_roots { is_roots_program(&small) } else { is_program_beside(&small, slowpath) };
        if is_ours { Self { path: small, words: &[] } } else { Self::slowpath(slowpath) }
    }
}

const EXECUTABLE: u32 = 0o111;

/// Whether only root can change the program, or what the path leads to.
fn is_roots_program(path: &Path) -> bool {
    let Ok(found) = trusted_file(path) else { return false };
    found.path == path && rustix::fs::fstat(&found.file).is_ok_and(|found| found.st_mode & EXECUTABLE != 0)
}

/// Whether it is a program of the same owner as the one beside it, which others do not write.
fn is_program_beside(path: &Path, other: &Path) -> bool {
    let (Ok(found), Ok(other)) = (fs::symlink_metadata(path), fs::metadata(other)) else { return false };
    found.is_file() && found.uid() == other.uid() && found.mode() & EXECUTABLE != 0 && found.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn the_small_program_is_used_where_it_stands_beside_slowpath_and_is_of_the_same_owner() {
        let place = tempfile::tempdir().unwrap();
        let (slowpath, small) = (place.path().join("slowpath"), place.path().join(SMALL));
        fs::write(&slowpath, "").unwrap();
        let is_used = || {
            let found = ReplayProgram::installed_with(&slowpath);
            assert!(found == ReplayProgram::slowpath(&slowpath) || found.words.is_empty());
            found.words.is_empty()
        };
        assert!(!is_used());
        let allow = |mode| fs::set_permissions(&small, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(&small, "").unwrap();
        for (mode, expected) in [(0o644, false), (0o777, false), (0o755, true)] {
            allow(mode);
            assert_eq!(is_used(), expected, "{mode:o}");
        }
        fs::rename(&small, place.path().join("other")).unwrap();
        symlink("other", &small).unwrap();
        assert!(!is_used(), "a link leads to what somebody else may have put there");
        fs::remove_file(&small).unwrap();
        fs::write(&small, "").unwrap();
        allow(0o755);
        if chown(&small, Some(65534), None).is_ok() {
            assert!(!is_used(), "it is somebody else's");
        }
    }
}
