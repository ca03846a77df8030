//! Switching a cgroup v2 controller on for the groups below one, and off again when the last of us that needs it is gone.
//!
//! Who needs it is written into root's own directory first. A controller that was on already, without a word of ours there,
//! is the machine's and stays on. After a SIGKILL [`clean`] finds the note of a dead process.

use crate::error::{LabError, failed};
use slowpath_process::{Entry, ListedEntry, StateDirectory};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Kind of the notes.
const KIND: &str = "controller";
/// Held while notes and `cgroup.subtree_control` must agree.
const LOCK: &str = "controllers.lock";

/// What one process needs; let go of when it is dropped.
#[derive(Debug)]
pub struct EnabledController {
    state: StateDirectory,
    note: Entry,
    what: Enabled,
}

/// A controller below a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Enabled {
    controller: String,
    group: PathBuf,
}

impl EnabledController {
    /// Switches `controller` on below `group`. `None`: it was on, and not by us.
    ///
    /// # Errors
    /// The kernel refuses, or the note cannot be written.
    pub fn new(group: &Path, controller: &str) -> Result<Option<Self>, LabError> {
        Self::noted_in(StateDirectory::of_this_user()?, group, controller)
    }

    fn noted_in(state: StateDirectory, group: &Path, controller: &str) -> Result<Option<Self>, LabError> {
        let note = |error| failed("note what is switched on in", state.path())(error);
        let what = Enabled { controller: controller.to_owned(), group: group.to_owned() };
        let _held = state.lock(LOCK).map_err(note)?;
        let switch = failed("switch a controller on in", group);
        if what.is_on().map_err(failed("read the controllers of", group))?
            && !noted(&state).map_err(note)?.iter().any(|(_, noted)| *noted == what)
        {
            return Ok(None);
        }
        let entry = state.new_file(KIND, &what.to_bytes()).map_err(note)?;
        if let Err(error) = what.switch("+") {
            let _ = entry.remove();
            return Err(switch(error));
        }
        Ok(Some(Self { note: entry, state, what }))
    }
}

impl Drop for EnabledController {
    fn drop(&mut self) {
        let Ok(_held) = self.state.lock(LOCK) else { return };
        let _ = self.note.remove();
        let _ = off_unless_noted(&self.state, &self.what);
    }
}

impl Enabled {
    fn is_on(&self) -> io::Result<bool> {
        let text = fs::read_to_string(self.group.join("cgroup.subtree_control"))?;
        Ok(text.split_ascii_whitespace().any(|one| one == self.controller))
    }

    fn switch(&self, sign: &str) -> io::Result<()> {
        fs::write(self.group.join("cgroup.subtree_control"), format!("{sign}{}", self.controller))
    }

    fn to_bytes(&self) -> Vec<u8> {
        [self.controller.as_bytes(), b"\0", self.group.as_os_str().as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let at = bytes.iter().position(|byte| *byte == 0)?;
        let (controller, group) = (std::str::from_utf8(&bytes[..at]).ok()?, OsStr::from_bytes(&bytes[at + 1..]));
        Some(Self { controller: controller.to_owned(), group: group.into() })
    }
}

/// All notes, those of dead processes included.
fn noted(state: &StateDirectory) -> io::Result<Vec<(ListedEntry, Enabled)>> {
    let notes = state.entries(KIND)?.into_iter();
    Ok(notes.filter_map(|note| Some((note.clone(), Enabled::from_bytes(&note.read().ok()?)?))).collect())
}

fn off_unless_noted(state: &StateDirectory, what: &Enabled) -> io::Result<()> {
    if noted(state)?.iter().any(|(_, noted)| noted == what) {
        return Ok(());
    }
    match what.switch("-") {
        // The group is gone, and with it what was switched on.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        switched => switched,
    }
}

/// Notes of dead processes: pid and cgroup.
pub(crate) fn left(state: &StateDirectory) -> io::Result<Vec<(ListedEntry, PathBuf)>> {
    let dead = noted(state)?.into_iter().filter(|(note, _)| !note.is_alive());
    Ok(dead.map(|(note, what)| (note, what.group)).collect())
}

/// Removes the note of a dead process, and switches off what nobody of us needs any more.
pub(crate) fn clean(state: &StateDirectory, note: &ListedEntry) -> io::Result<()> {
    let _held = state.lock(LOCK)?;
    let Some(what) = note.read().ok().and_then(|bytes| Enabled::from_bytes(&bytes)) else { return note.remove() };
    note.remove()?;
    off_unless_noted(state, &what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cgroup directory is stood in for by one with the one file: what the kernel does with it is not looked at here.
    struct Group(tempfile::TempDir, StateDirectory);

    impl Group {
        fn with(on: &str) -> Self {
            let place = tempfile::tempdir_in("/var/tmp").unwrap();
            fs::write(place.path().join("cgroup.subtree_control"), on).unwrap();
            let state = StateDirectory::at(&place.path().join("state")).unwrap();
            Self(place, state)
        }

        fn take(&self) -> Option<EnabledController> {
            EnabledController::noted_in(self.1.clone(), self.0.path(), "io").unwrap()
        }

        fn written(&self) -> String {
            fs::read_to_string(self.0.path().join("cgroup.subtree_control")).unwrap()
        }

        /// As the kernel shows it after what was written.
        fn shows(&self, on: &str) {
            fs::write(self.0.path().join("cgroup.subtree_control"), on).unwrap();
        }
    }

    #[test]
    fn a_controller_that_was_on_stays_on() {
        let group = Group::with("cpu io");
        assert!(group.take().is_none());
        assert_eq!(group.written(), "cpu io");
    }

    #[test]
    fn the_last_that_needs_it_switches_it_off() {
        let group = Group::with("cpu");
        let one = group.take().unwrap();
        assert_eq!(group.written(), "+io");
        group.shows("cpu io");
        let two = group.take().unwrap();
        group.shows("cpu io");
        drop(one);
        assert_eq!(group.written(), "cpu io");
        drop(two);
        assert_eq!(group.written(), "-io");
        assert!(noted(&group.1).unwrap().is_empty());
    }

    #[test]
    fn the_kernels_own_controller_is_off_again_afterwards() {
        let mounts = slowpath_process::MountPoint::all().unwrap();
        let Some(root) = mounts.into_iter().find(|mount| mount.kind == "cgroup2").map(|mount| mount.at) else {
            println!("skipped: cgroup v2 is not mounted");
            return;
        };
        let words = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
        let (there, on) = (words("cgroup.controllers"), words("cgroup.subtree_control"));
        let off = there.split_whitespace().find(|one| !on.split_whitespace().any(|other| other == *one));
        let (Some(controller), true) = (off, nix::unistd::geteuid().is_root()) else {
            println!("skipped: no controller of cgroup v2 that is off, or no root");
            return;
        };
        let enabled = EnabledController::new(&root, controller).unwrap();
        assert!(enabled.is_some() && words("cgroup.subtree_control").contains(controller));
        drop(enabled);
        assert_eq!(words("cgroup.subtree_control"), on);
    }

    #[test]
    fn what_a_killed_process_switched_on_is_switched_off() {
        let group = Group::with("");
        let killed = group.take().unwrap();
        let me = slowpath_process::Owner::this_process().unwrap();
        let dead = slowpath_process::Owner { start: me.start + 1, ..me }.fresh_name(KIND);
        fs::rename(killed.note.path(), group.1.path().join(dead)).unwrap();
        assert!(left(&group.1).unwrap().is_empty(), "its lock is held");
        // As the kernel lets go of the descriptors of a killed process, without what drop does.
        let EnabledController { note, state, .. } = &killed;
        rustix::fs::flock(note, rustix::fs::FlockOperation::Unlock).unwrap();
        let found = left(state).unwrap().pop().unwrap();
        assert_eq!(found.1, group.0.path());
        group.shows("io");
        clean(state, &found.0).unwrap();
        assert_eq!(group.written(), "-io");
        assert!(noted(&group.1).unwrap().is_empty());
    }
}
