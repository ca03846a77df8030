//! The first launch of each arm of a warm trial, which warms it up and does not count: which arms get ready in it, and which of them can be
//! judged then.

use super::warm::{WarmArm, WarmTrial, launches};
use crate::comparison::{Role, Sample};
use crate::conditions::Conditions;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::{Progress, interrupt};
use std::collections::BTreeSet;

impl WarmTrial {
    /// Launches each arm once. Arms stay that got ready and can be judged; none, where nothing that is tried can be.
    ///
    /// # Errors
    /// A launch could not be made, one without a treatment was not ready, or the user asked to stop.
    pub fn warm_up(&mut self, conditions: &mut Conditions, seed: u64, progress: &dyn Progress) -> Result<(), Failure> {
        let mut arms = std::mem::take(&mut self.arms);
        let mut are_ready = vec![true; arms.len()];
        let mut launches = launches(&arms, conditions, seed);
        for (number, arm) in arms.iter().enumerate() {
            progress.step(&format!("warming up: {}", arm.arm.name));
            let launched = match launches.one(number, 0) {
                // Mounts that this machine refuses are a treatment that cannot be tried, and no failure of the others.
                Err(failure) if arm.has_mounts() && failure.kind() == Kind::Machine && !interrupt::requested() => {
                    are_ready[number] = false;
                    if let Some(tried) = arm.tried {
                        self.failing.insert(tried, format!("it cannot be tried here: {}", failure.chain()));
                    }
                    continue;
                }
                launched => launched?,
            };
            match (launched, arm.tried) {
                (Sample::Stopped, _) => return Err(Failure::new(Kind::Interrupted, "interrupted")),
                (Sample::Failed(reason), Some(tried)) => {
                    are_ready[number] = false;
                    self.failing.insert(tried, format!("the program fails with it: {reason}"));
                }
                (Sample::Failed(reason), None) => {
                    let name = &arm.arm.name;
                    return Err(Failure::new(Kind::Target, format!("{name} failed in its first launch: {reason}")));
                }
                (Sample::Measured(_) | Sample::Discarded(_), _) => {}
            }
        }
        drop(launches);
        let mut are_ready = are_ready.into_iter();
        arms.retain(|_| are_ready.next().unwrap_or(true));
        self.arms = judged(arms);
        Ok(())
    }
}

/// Those of the arms that can be judged beside each other: what is tried in mounts has its sham, and a sham what it is for.
fn judged(mut arms: Vec<WarmArm>) -> Vec<WarmArm> {
    let shams = arms.iter().filter(|arm| arm.arm.role == Role::Sham);
    let shams: BTreeSet<String> = shams.map(|arm| arm.arm.name.clone()).collect();
    let has_sham = |arm: &WarmArm| arm.arm.sham.as_ref().is_some_and(|sham| shams.contains(sham));
    arms.retain(|arm| arm.arm.role != Role::Fix || !arm.has_mounts() || has_sham(arm));
    let named: BTreeSet<String> = arms.iter().filter_map(|arm| arm.arm.sham.clone()).collect();
    arms.retain(|arm| arm.arm.role != Role::Sham || named.contains(&arm.arm.name));
    if arms.iter().any(|arm| arm.arm.role == Role::Fix) { arms } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::Tried;
    use super::super::warm::arms;
    use super::*;
    use crate::comparison::Arm;
    use slowpath_fix::{FilePermissions, TreatedFile, Treatment};
    use slowpath_launch::ReadyWhen;
    use slowpath_session::target::{Invocation, Target};
    use std::collections::BTreeMap;

    /// Names of the arms that are judged of a fix of variables and one of files when those in `lost` did not get ready.
    fn judged_without(lost: &[&str]) -> Vec<String> {
        let tried = |name: &str, treatment| {
            let arm = Arm { name: name.to_owned(), title: String::new(), role: Role::Fix, sham: None };
            Tried { arm, treatment }
        };
        let permissions = |mode| FilePermissions { mode, acl: None };
        let file = TreatedFile {
            path: "/a".into(),
            identity: (8, 1, 5),
            uid: 0,
            gid: 0,
            before: permissions(0o100_600),
            after: permissions(0o100_604),
            only: BTreeSet::new(),
        };
        let all =
            [tried("variables", Treatment::variable("A", "1")), tried("files", Treatment::Files { files: vec![file] })];
        let invocation = Invocation { user: None, ready: ReadyWhen::Exit, timeout: None, env: Vec::new() };
        let target = Target::of(invocation, vec!["true".into()], None).unwrap();
        let mut arms = arms(&target, &all, &BTreeMap::new(), &BTreeMap::new());
        arms.retain(|arm| !lost.contains(&arm.arm.name.as_str()));
        judged(arms).into_iter().map(|arm| arm.arm.name).collect()
    }

    #[test]
    fn without_its_sham_what_is_tried_in_mounts_is_not_judged_and_no_sham_is_launched_for_nothing() {
        let all = ["untreated", "variables", "files", "sham_environment", "sham_files"];
        assert_eq!(judged_without(&[]), all);
        assert_eq!(judged_without(&["sham_files"]), ["untreated", "variables", "sham_environment"]);
        assert_eq!(judged_without(&["variables"]), ["untreated", "files", "sham_files"]);
        assert!(judged_without(&["variables", "sham_files"]).is_empty());
        assert!(judged_without(&["variables", "files"]).is_empty());
    }
}
