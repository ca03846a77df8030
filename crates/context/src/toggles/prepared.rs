//! The conditions of launches, for each choice of sides.

use super::error::ToggleError;
use super::groups::{GroupFile, MadeGroups};
use super::setting::{Setting, set_variable};
use crate::factors::environment::InCommon;
use slowpath_launch::{ContextStep, LaunchSpec};
use std::path::PathBuf;

/// One of the two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The one in which the command is fast.
    Fast,
    /// The one in which it is slow.
    Slow,
}

/// Launches that have the value of either side of each candidate. What was made for them is removed when this is dropped: not before
/// the last launch has ended.
#[derive(Debug)]
pub struct Prepared {
    base: LaunchSpec,
    settings: Vec<[Vec<Setting>; 2]>,
    groups: MadeGroups,
    /// Where some launch has another user than the caller: the caller's own place, which all launches then enter before they take on
    /// their user, as a program does that changes its user later, for it need not be open to the other user. A directory that a
    /// context names is entered as the user.
    enters_first: Option<PathBuf>,
}

impl Prepared {
    pub(super) fn new(
        base: &LaunchSpec,
        settings: &[[Vec<Setting>; 2]],
        common: &[Setting],
        variables: Option<&InCommon>,
    ) -> Result<Self, ToggleError> {
        let mut base = base.clone();
        if let Some(variables) = variables {
            base.env.retain(|(name, _)| !name.to_str().is_some_and(|name| variables.removes(name)));
            variables.variables.iter().for_each(|(name, value)| set_variable(&mut base, name, Some(value)));
        }
        let (mut files, mut prepared) = (Vec::new(), Self::empty(base, settings, common));
        common.iter().for_each(|setting| setting.carry_out(&mut prepared.base, &mut files));
        prepared.groups.common = files;
        // What cannot be made is said before the first launch.
        for side in [Side::Fast, Side::Slow] {
            prepared.spec(&vec![side; settings.len()])?;
        }
        Ok(prepared)
    }

    fn empty(base: LaunchSpec, settings: &[[Vec<Setting>; 2]], common: &[Setting]) -> Self {
        let changes_user = |setting: &Setting| matches!(setting, Setting::Identity { .. });
        let enters_first = base.identity.uid != nix::unistd::geteuid().as_raw()
            || settings.iter().flatten().flatten().chain(common).any(changes_user);
        let enters_first = enters_first.then(|| base.cwd.clone());
        Self { base, settings: settings.to_vec(), groups: MadeGroups::default(), enters_first }
    }

    /// The conditions of a launch in which each candidate has the value of its side (`sides` in the order of
    /// [`super::Plan::candidates`]). What both contexts have in common is applied too where it differs from the caller's own. All
    /// launches go through the same steps: one whose side has nothing gets the value that it has anyway, or a cgroup without a
    /// limit, so that launches differ in the value alone.
    ///
    /// # Errors
    /// The number of sides is wrong, or a cgroup cannot be made.
    pub fn spec(&self, sides: &[Side]) -> Result<LaunchSpec, ToggleError> {
        if sides.len() != self.settings.len() {
            return Err(ToggleError::Sides { given: sides.len(), expected: self.settings.len() });
        }
        let mut spec = self.base.clone();
        let mut files: Vec<GroupFile> = self.groups.common.clone();
        for (settings, side) in self.settings.iter().zip(sides) {
            let of_side = match side {
                Side::Fast => &settings[0],
                Side::Slow => &settings[1],
            };
            of_side.iter().for_each(|setting| setting.carry_out(&mut spec, &mut files));
        }
        if let Some(path) = self.enters_first.as_ref().filter(|path| **path == spec.cwd) {
            spec.context.push(ContextStep::EnterDirectory { path: path.clone() });
        }
        // Another user's launch has one in any case: then all have, so that they do not differ in that.
        spec.session |= self.enters_first.is_some();
        spec.cgroups.extend(self.groups.joined(files)?);
        Ok(spec)
    }
}
