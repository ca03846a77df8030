//! Which diagnoses root made, so that root knows its own again.
//!
//! A diagnosis lies in a directory of the user it was made for, whose programs can rewrite it. So when `diagnose` ends as root, it notes
//! here, in root's own directory, where the diagnosis is, who asked for it, and the digest of its text as root had it before it was
//! written. The text holds the digests of its preload plans. Leaves comparing, and what is said, to the command.

use super::error::ApplyError;
use super::journal::FileContent;
use super::place::{FilePlace, There};
use super::records::locked;
use crate::Word;
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Where root keeps it. No variable of the caller's decides it.
const OF_ROOT: &str = "/var/lib/slowpath/diagnoses";
/// The file in it.
const FILE: &str = "made.json";
/// Name and version of the format.
const SCHEMA: &str = "slowpath-diagnoses-made/1";
/// Diagnoses that are remembered, the last that were made: some 300 bytes each.
const MOST: usize = 1000;

/// A diagnosis that root made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Its directory: absolute, and without links when it was made.
    pub directory: Word,
    /// Who asked for it.
    pub invoker: u32,
    /// SHA-256 of its text.
    pub sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    schema: String,
    made: Vec<Made>,
}

/// The diagnoses that root made.
pub struct MadeDiagnoses {
    path: PathBuf,
}

impl MadeDiagnoses {
    /// Those of this machine.
    pub fn of_root() -> Self {
        Self { path: OF_ROOT.into() }
    }

    /// Notes one, in place of what was in its directory before. It is on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&self, made: Made) -> Result<(), ApplyError> {
        let _lock = locked(&self.path)?;
        let place = self.place().map_err(|error| ApplyError::unusable(&self.path, error))?;
        let there = place.look().map_err(|error| ApplyError::unusable(&self.path, error))?;
        // A damaged list vouches for nothing, and begins anew.
        let mut list = self.list(&there).unwrap_or_default();
        list.made.retain(|one| one.directory != made.directory);
        list.made.push(made);
        let old = list.made.len().saturating_sub(MOST);
        list.made.drain(..old);
        list.schema = SCHEMA.to_owned();
        let wanted = FileContent {
            content: serde_json::to_vec(&list).unwrap_or_default().into(),
            mode: 0o600,
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            modified: None,
        };
        place.replace(&format!(".{FILE}.new"), &wanted, there.file())
    }

    /// Whether this is one of them, unchanged.
    ///
    /// # Errors
    /// The list is damaged or cannot be read.
    pub fn has(&self, made: &Made) -> Result<bool, ApplyError> {
        match self.place().and_then(|place| place.look()) {
            Ok(there) => Ok(self.list(&there)?.made.contains(made)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(ApplyError::unusable(&self.path, error)),
        }
    }

    fn list(&self, there: &There) -> Result<List, ApplyError> {
        let damaged = |why: String| ApplyError::DamagedList { path: self.path.join(FILE), why };
        match there {
            There::Nothing => Ok(List::default()),
            There::Else(why) => Err(damaged(why.clone())),
            There::File(file) => {
                let list: List =
                    serde_json::from_slice(file.content.as_bytes()).map_err(|error| damaged(error.to_string()))?;
                match list.schema == SCHEMA {
                    true => Ok(list),
                    false => Err(damaged(format!("its format is {:?}, this slowpath reads {SCHEMA:?}", list.schema))),
                }
            }
        }
    }

    fn place(&self) -> io::Result<FilePlace> {
        FilePlace::open(&self.path.join(FILE))
    }
}

/// The note of a diagnosis in this directory, made for this user, of this text.
pub fn made(directory: &Path, invoker: u32, text: &[u8]) -> Made {
    Made { directory: directory.as_os_str().into(), invoker, sha256: crate::sha256(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn list(place: &tempfile::TempDir) -> MadeDiagnoses {
        MadeDiagnoses { path: place.path().join("slowpath/diagnoses") }
    }

    fn one(directory: &str, text: &str) -> Made {
        made(Path::new(directory), 7, text.as_bytes())
    }

    #[test]
    fn a_diagnosis_is_known_by_its_directory_its_invoker_and_its_text() {
        let place = tempfile::tempdir().unwrap();
        let list = list(&place);
        assert!(!list.has(&one("/d", "text")).unwrap(), "nothing is known where nothing was noted");
        list.note(one("/d", "text")).unwrap();
        assert!(list.has(&one("/d", "text")).unwrap());
        for other in [one("/e", "text"), one("/d", "text "), Made { invoker: 8, ..one("/d", "text") }] {
            assert!(!list.has(&other).unwrap(), "{other:?}");
        }
        // The next one in the same directory replaces it.
        list.note(one("/d", "later")).unwrap();
        assert!(list.has(&one("/d", "later")).unwrap() && !list.has(&one("/d", "text")).unwrap());
        let names = fs::read_dir(place.path().join("slowpath/diagnoses")).unwrap();
        assert_eq!(names.map(|name| name.unwrap().file_name()).collect::<Vec<_>>(), [FILE]);
    }

    #[test]
    fn old_ones_go_and_a_damaged_list_vouches_for_nothing() {
        let place = tempfile::tempdir().unwrap();
        let list = list(&place);
        list.note(one("/0", "x")).unwrap();
        let all: Vec<Made> = (0..MOST).map(|number| one(&format!("/{number}"), "x")).collect();
        let full = List { schema: SCHEMA.to_owned(), made: all };
        let path = place.path().join("slowpath/diagnoses").join(FILE);
        fs::write(&path, serde_json::to_vec(&full).unwrap()).unwrap();
        list.note(one("/new", "x")).unwrap();
        assert!(!list.has(&one("/0", "x")).unwrap() && list.has(&one("/1", "x")).unwrap());
        assert!(list.has(&one("/new", "x")).unwrap());
        fs::write(&path, "{").unwrap();
        assert!(list.has(&one("/new", "x")).unwrap_err().to_string().contains("made.json"));
        list.note(one("/again", "x")).unwrap();
        assert!(list.has(&one("/again", "x")).unwrap() && !list.has(&one("/new", "x")).unwrap());
    }

    #[test]
    fn what_a_kill_left_of_writing_is_no_list_and_goes() {
        let place = tempfile::tempdir().unwrap();
        let list = list(&place);
        list.note(one("/d", "x")).unwrap();
        let left = place.path().join("slowpath/diagnoses/.made.json.new");
        fs::write(&left, "{\"schema\":").unwrap();
        assert!(list.has(&one("/d", "x")).unwrap());
        list.note(one("/e", "x")).unwrap();
        assert!(!left.exists() && list.has(&one("/d", "x")).unwrap() && list.has(&one("/e", "x")).unwrap());
    }
}
