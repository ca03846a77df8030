//! `{tmp}` in a command: a fresh, empty directory for each launch, owned by the target's user and removed afterwards, with
//! that user's rights. Its name cannot be foreseen; what it is called and which directory it is stands in our own directory
//! ([`StateDirectory`]), by which that of a killed slowpath is found. A name in `/tmp` alone says nothing: anybody can make it.

use serde::{Deserialize, Serialize};
use slowpath_launch::Identity;
use slowpath_process::{
    Credentials, Entry, FileIdentity, ListedEntry, StateDirectory, fresh_directory, remove_directory_as,
    remove_empty_directory, trusted_directory,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};

const BASE: &str = "/tmp";
const PREFIX: &str = "slowpath-tmp-";
/// Kind of the notes.
const KIND: &str = "tmp";

/// What is noted of a directory: its name before it is made, and the rest before its user gets it.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    name: String,
    made: Option<Made>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Made {
    identity: FileIdentity,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Note {
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    fn of(found: &ListedEntry) -> Option<Self> {
        serde_json::from_slice(&found.read().ok()?).ok()
    }

    /// Removes the directory, if it is still the one that was made.
    fn remove(&self) -> io::Result<()> {
        let parent = trusted_directory(Path::new(BASE))?;
        match &self.made {
            Some(made) => made.remove(&parent, &self.name),
            // Nobody has got it yet: it is empty.
            None => remove_empty_directory(&parent, OsStr::new(&self.name)),
        }
    }
}

impl Made {
    fn remove(&self, parent: &OwnedFd, name: &str) -> io::Result<()> {
        let user = Credentials { uid: self.uid, gid: self.gid, groups: self.groups.clone() };
        remove_directory_as(&user, parent, OsStr::new(name), self.identity)
    }
}

/// Removed when dropped.
#[derive(Debug)]
pub struct FreshDirectory {
    path: PathBuf,
    note: Note,
    /// Where there is no directory of our own, nothing is noted: what is left after a kill stays.
    entry: Option<Entry>,
}

impl FreshDirectory {
    /// Makes one for `identity`.
    pub fn new(identity: &Identity) -> io::Result<Self> {
        let parent = trusted_directory(Path::new(BASE))?;
        let state = StateDirectory::of_this_user().ok();
        let mut fresh = Self { path: PathBuf::new(), note: Note { name: String::new(), made: None }, entry: None };
        let directory = fresh_directory(&parent, PREFIX, |name| {
            fresh.path = Path::new(BASE).join(name);
            fresh.note.name = name.to_string_lossy().into_owned();
            let note = fresh.note.to_bytes()?;
            fresh.entry = state.as_ref().map(|state| state.new_file(KIND, &note)).transpose()?;
            Ok(())
        })?;
        let (uid, gid, groups) = (identity.uid, identity.gid, identity.groups.clone());
        fresh.note.made = Some(Made { identity: FileIdentity::of(&directory)?, uid, gid, groups });
        if let Some(entry) = &fresh.entry {
            entry.write(&fresh.note.to_bytes()?)?;
        }
        if nix::unistd::geteuid().is_root() {
            fchown(&directory, Some(uid), Some(gid))?;
        }
        Ok(fresh)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FreshDirectory {
    fn drop(&mut self) {
        // What cannot be removed now stays noted.
        if self.note.remove().is_ok()
            && let Some(entry) = &self.entry
        {
            let _ = entry.remove();
        }
    }
}

fn left() -> Vec<(ListedEntry, Option<Note>)> {
    let Ok(state) = StateDirectory::existing() else { return Vec::new() };
    let dead = state.entries(KIND).unwrap_or_default().into_iter().filter(|found| !found.is_alive());
    dead.map(|found| (found.clone(), Note::of(&found))).collect()
}

fn place(found: &ListedEntry, note: Option<&Note>) -> PathBuf {
    note.map_or_else(|| found.path(), |note| Path::new(BASE).join(&note.name))
}

/// Directories whose slowpath is gone.
pub fn leftovers() -> Vec<PathBuf> {
    left().iter().map(|(found, note)| place(found, note.as_ref())).collect()
}

/// Removes them, each with its result.
pub fn clean() -> Vec<(PathBuf, io::Result<()>)> {
    let remove = |(found, note): (ListedEntry, Option<Note>)| {
        let place = place(&found, note.as_ref());
        // A note that says nothing was being written when its slowpath was killed: there is no directory yet.
        (place, note.map_or(Ok(()), |note| note.remove()).and_then(|()| found.remove()))
    };
    left().into_iter().map(remove).collect()
}
