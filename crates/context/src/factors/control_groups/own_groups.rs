//! The cgroups of this process, below which those of launches are made.

use super::hierarchy::Groups;
use super::mounted::Group;
use crate::kernel_files::KernelFiles;
use crate::task_files::TaskFiles;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The caller's own groups: where others can be made, or why not, by controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnGroups(BTreeMap<String, Result<OwnGroup, String>>);

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct OwnGroup {
    pub(super) directory: PathBuf,
    /// Whether it is of version 2.
    pub(super) unified: bool,
}

impl OwnGroups {
    /// Those of the calling process.
    pub(crate) fn here() -> Self {
        let kernel_files = KernelFiles::here();
        let own = std::process::id();
        let Ok(groups) = Groups::of(&TaskFiles::process(&kernel_files, &format!("proc/{own}"), Some(own))) else {
            return Self::default();
        };
        let mut found = BTreeMap::new();
        for (controller, chain) in &groups.version_1 {
            if let Some(directory) = chain.first().map(Group::path) {
                found.insert(controller.clone(), makeable(OwnGroup { directory, unified: false }));
            }
        }
        if let Some(own) = groups.version_2.as_ref().and_then(|chain| chain.first()) {
            for controller in own.read("cgroup.controllers").unwrap_or_default().split_whitespace() {
                let group = OwnGroup { directory: own.path(), unified: true };
                found.entry(controller.to_owned()).or_insert_with(|| makeable(group));
            }
        }
        Self(found)
    }

    /// The one in the hierarchy of a controller.
    ///
    /// # Errors
    /// There is none, or no other can be made below it.
    pub(super) fn of(&self, controller: &str) -> Result<&OwnGroup, String> {
        match self.0.get(controller) {
            Some(group) => group.as_ref().map_err(Clone::clone),
            None => Err(format!("this machine shows no hierarchy with the controller {controller}")),
        }
    }
}

/// The group, where groups can be made below it.
fn makeable(group: OwnGroup) -> Result<OwnGroup, String> {
    let shown = group.directory.display().to_string();
    // With processes in it, a cgroup v2 gives its controllers to no other, unless it is the root, which has no type.
    if group.unified && group.directory.join("cgroup.type").exists() {
        return Err(format!(
            "{shown} holds this process, and version 2 gives controllers only to groups below one without processes: run slowpath \
             from the root group"
        ));
    }
    match nix::unistd::access(&group.directory, nix::unistd::AccessFlags::W_OK) {
        Ok(()) => Ok(group),
        Err(error) => Err(format!("cannot create a cgroup below {shown} ({error}): run slowpath as root")),
    }
}
