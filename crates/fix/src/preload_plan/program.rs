//! The program that replays a plan beside a command, and the words it is given.
//!
//! Owns that choice: `slowpath-preload`, where it stands beside slowpath, for it is a fraction of slowpath's size, and is read first at
//! each cold start; else slowpath itself. What is kept names that program, so it has to be of whoever installed slowpath; and what root
//! keeps, root's.

use slowpath_process::trusted_file;
use std::fs;
use std::io;
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

    /// The one to use where slowpath is installed at `slowpath`. What root keeps starts it as root, or as whoever trusts root: so as root
    /// nobody else may be able to change it. Others start what they start anyway.
    ///
    /// # Errors
    /// As root: somebody else can change slowpath, or a part of the path to it.
    pub fn installed_with(slowpath: &Path) -> io::Result<Self> {
        let small = slowpath.with_file_name(SMALL);
        let is_root = nix::unistd::geteuid().is_root();
        let is_ours = if is_root { is_roots_program(&small).is_ok() } else { is_program_beside(&small, slowpath) };
        if is_ours {
            return Ok(Self { path: small, words: &[] });
        }
        if is_root {
            is_roots_program(slowpath)?;
        }
        Ok(Self::slowpath(slowpath))
    }
}

const EXECUTABLE: u32 = 0o111;

/// Whether only root can change the program, or what the path leads to; why not.
fn is_roots_program(path: &Path) -> io::Result<()> {
    let found = trusted_file(path)?;
    let is_program = rustix::fs::fstat(&found.file)?.st_mode & EXECUTABLE != 0;
    match is_program && found.path == path {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} is no program, or behind a symbolic link", path.display()))),
    }
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
        fs::set_permissions(&slowpath, fs::Permissions::from_mode(0o755)).unwrap();
        let is_used = || {
            let found = ReplayProgram::installed_with(&slowpath).unwrap();
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

    #[test]
    fn root_keeps_no_program_that_somebody_else_can_change_and_others_keep_their_own() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let slowpath = at("bin/slowpath");
        fs::create_dir(at("bin")).unwrap();
        fs::write(&slowpath, "").unwrap();
        fs::set_permissions(&slowpath, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("bin", at("link")).unwrap();
        let kept = |path: &Path| ReplayProgram::installed_with(path).map_err(|error| error.to_string());
        let itself = Ok(ReplayProgram::slowpath(&slowpath));
        assert_eq!(kept(&slowpath), itself);
        if !nix::unistd::geteuid().is_root() {
            return println!("skipped: only root is refused");
        }
        assert!(kept(&at("link/slowpath")).unwrap_err().contains("behind a symbolic link"));
        fs::set_permissions(&slowpath, fs::Permissions::from_mode(0o775)).unwrap();
        assert!(kept(&slowpath).unwrap_err().contains("slowpath can be changed by other users"));
        fs::set_permissions(&slowpath, fs::Permissions::from_mode(0o755)).unwrap();
        // As after `cargo build` in a user's checkout: whoever owns the directory puts another program there.
        chown(at("bin"), Some(65534), None).unwrap();
        assert!(kept(&slowpath).unwrap_err().contains("bin can be changed by other users"));
        fs::write(at("bin").join(SMALL), "").unwrap();
        fs::set_permissions(at("bin").join(SMALL), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(kept(&slowpath).is_err(), "the small program lies there, too");
        chown(at("bin"), Some(0), None).unwrap();
        assert!(kept(&slowpath).is_ok_and(|found| found.words.is_empty()));
    }
}
