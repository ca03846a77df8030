//! What a launch needs for one value of one factor.

use super::groups::GroupFile;
use slowpath_launch::{ContextStep, LaunchSpec, Limit};
use std::ffi::OsString;
use std::path::PathBuf;

/// One change of the conditions of a launch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Setting {
    /// Set by the target itself.
    Step(ContextStep),
    /// A variable of its environment, or that there is none.
    Variable { name: String, value: Option<String> },
    /// A resource limit.
    Limit(Limit),
    /// Who it runs as; names and home stay.
    Identity { uid: u32, gid: u32, groups: Vec<u32> },
    /// Where it works.
    Directory(PathBuf),
    /// Whether it has a session of its own.
    Session(bool),
    /// A file of the cgroup that the launch gets for the controllers of that directory.
    Group(GroupFile),
}

impl Setting {
    /// Changes the conditions; what concerns cgroups is collected in `files`.
    pub(super) fn carry_out(&self, spec: &mut LaunchSpec, files: &mut Vec<GroupFile>) {
        match self {
            Self::Step(step) => spec.context.push(step.clone()),
            Self::Variable { name, value } => set_variable(spec, name, value.as_deref()),
            Self::Limit(limit) => {
                spec.limits.retain(|one| one.kind != limit.kind);
                spec.limits.push(*limit);
            }
            Self::Identity { uid, gid, groups } => {
                (spec.identity.uid, spec.identity.gid) = (*uid, *gid);
                spec.identity.groups.clone_from(groups);
            }
            Self::Directory(path) => spec.cwd.clone_from(path),
            Self::Session(own) => spec.session = *own,
            Self::Group(file) => files.push(file.clone()),
        }
    }
}

/// In its place where there is one, so that the rest of the environment stays where it is.
pub(super) fn set_variable(spec: &mut LaunchSpec, name: &str, value: Option<&str>) {
    let Some(value) = value else {
        spec.env.retain(|(present, _)| present != name);
        return;
    };
    match spec.env.iter_mut().find(|(present, _)| present == name) {
        Some((_, old)) => *old = OsString::from(value),
        None => spec.env.push((name.into(), value.into())),
    }
}
