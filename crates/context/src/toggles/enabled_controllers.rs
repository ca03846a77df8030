//! Controllers of version 2 that were switched on for groups below a group, and are switched off again: at the end, or after a killed
//! process by the next one that makes groups.
//!
//! Each is recorded before it is switched on, by an empty group beside those of the launches whose name says which controller and who
//! did it (`slowpath-enabled-CONTROLLER-PID-START-N`). Who has the last living record of a controller switches it off.

use slowpath_lab::Owner;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a record's name begins with. No controller has a hyphen in its name.
const RECORD: &str = "slowpath-enabled";

/// A controller that this process switched on.
#[derive(Debug)]
pub(super) struct Enabled {
    parent: PathBuf,
    controller: String,
    record: PathBuf,
}

impl Enabled {
    /// Switches `controller` on for the groups below `parent`; none where it is on for somebody else's reasons.
    pub(super) fn new(parent: &Path, controller: &str) -> io::Result<Option<Self>> {
        let is_recorded = records(parent).iter().any(|(named, ..)| named == controller);
        if is_on(parent, controller)? && !is_recorded {
            return Ok(None);
        }
        let owner = Owner::this_process()?;
        let record = parent.join(owner.fresh_name(&format!("{RECORD}-{controller}")));
        fs::create_dir(&record)?;
        let enabled = Self { parent: parent.to_owned(), controller: controller.to_owned(), record };
        fs::write(parent.join(CONTROL), format!("+{controller}"))?;
        Ok(Some(enabled))
    }
}

impl Drop for Enabled {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.record);
        switch_off(&self.parent, &self.controller);
    }
}

const CONTROL: &str = "cgroup.subtree_control";

fn is_on(parent: &Path, controller: &str) -> io::Result<bool> {
    Ok(fs::read_to_string(parent.join(CONTROL))?.split_whitespace().any(|one| one == controller))
}

/// Where nobody has it recorded. Where a launch uses it without, the kernel refuses, or its group says so.
fn switch_off(parent: &Path, controller: &str) {
    if !records(parent).iter().any(|(named, ..)| named == controller) {
        let _ = fs::write(parent.join(CONTROL), format!("-{controller}"));
    }
}

/// The records below a group: controller, owner, directory. Those of other users are none.
fn records(parent: &Path) -> Vec<(String, Owner, PathBuf)> {
    let own = nix::unistd::geteuid().as_raw();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let record = |entry: fs::DirEntry| {
        let is_own = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        let name = entry.file_name().into_string().ok().filter(|_| is_own)?;
        let (controller, _) = name.strip_prefix(RECORD)?.strip_prefix('-')?.split_once('-')?;
        let owner = Owner::parse(&name, &format!("{RECORD}-{controller}"))?;
        Some((controller.to_owned(), owner, entry.path()))
    };
    entries.filter_map(record).collect()
}

/// Switches off what killed processes left on below this group.
pub(super) fn restore(parent: &Path) {
    for (controller, _, record) in records(parent).into_iter().filter(|(_, owner, _)| !owner.is_alive()) {
        if fs::remove_dir(record).is_ok() {
            switch_off(parent, &controller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_on_is_switched_off_and_what_is_used_stays_on() {
        // Any directory will do: what the kernel makes of the words is seen in the tests of toggles.
        let parent = tempfile::tempdir().unwrap();
        let control = parent.path().join(CONTROL);
        fs::write(&control, "cpu").unwrap();
        assert!(Enabled::new(parent.path(), "cpu").unwrap().is_none(), "it was on before");
        let first = Enabled::new(parent.path(), "hugetlb").unwrap().unwrap();
        assert_eq!(fs::read_to_string(&control).unwrap(), "+hugetlb");
        let me = Owner::this_process().unwrap();
        let dead = Owner { start: me.start + 1, ..me };
        for controller in ["hugetlb", "io"] {
            fs::create_dir(parent.path().join(dead.fresh_name(&format!("{RECORD}-{controller}")))).unwrap();
        }
        restore(parent.path());
        assert_eq!(fs::read_to_string(&control).unwrap(), "-io", "the other one is in use");
        assert_eq!(records(parent.path()).len(), 1);
        drop(first);
        assert_eq!(fs::read_to_string(&control).unwrap(), "-hugetlb");
        assert!(records(parent.path()).is_empty());
    }
}
