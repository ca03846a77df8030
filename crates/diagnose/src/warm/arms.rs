//! The arms of a warm diagnosis: the launch as it is, with each fix that can be tried, and with a sham of each kind of fix.
//!
//! Owns that all environments are of one size: variables that a fix adds are made up for by padding elsewhere, so that no arm has
//! another place of the stack than the others in its block.

use crate::file_trial::{merged, mounts};
use slowpath_fix::allocator_tunables::VARIABLE as TUNABLES;
use slowpath_fix::{FilePermissions, Proposal, TreatedFile, sham_environment};
use slowpath_launch::MountStep;
use slowpath_session::target::Target;
use slowpath_verify::declared_arms::{SHAM_ENVIRONMENT, SHAM_FILES, UNTREATED};
use slowpath_verify::{Arm, Role};
use std::ffi::{OsStr, OsString};

/// An arm.
pub struct WarmArm {
    /// For the comparison.
    pub arm: Arm,
    /// What is launched.
    pub target: Target,
    /// Place of the fix that it is among the proposals.
    pub proposal: Option<usize>,
    /// Bytes that its environment is smaller than the largest.
    pub padding: usize,
}

/// An arm before it has a target.
struct Treatment {
    arm: Arm,
    proposal: Option<usize>,
    variables: Vec<(OsString, OsString)>,
    mounts: Vec<MountStep>,
}

/// The arms, the untreated launch first; nothing where no fix can be tried.
pub fn choose(target: &Target, proposals: &[Proposal]) -> Vec<WarmArm> {
    let untreated = target.variables();
    let treatments = treatments(&untreated, proposals);
    let targets: Vec<Target> = treatments.iter().map(|one| treated(target, one)).collect();
    let sizes: Vec<usize> = targets.iter().map(|target| size(&target.variables())).collect();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let arms = treatments.into_iter().zip(targets).zip(sizes);
    arms.map(|((treatment, target), size)| WarmArm {
        arm: treatment.arm,
        target,
        proposal: treatment.proposal,
        padding: largest - size,
    })
    .collect()
}

fn treated(target: &Target, treatment: &Treatment) -> Target {
    let target = target.with(&treatment.variables);
    if treatment.mounts.is_empty() { target } else { target.seeing(treatment.mounts.clone()) }
}

fn treatments(untreated: &[(OsString, OsString)], proposals: &[Proposal]) -> Vec<Treatment> {
    let is_tried = |proposal: &Proposal| !proposal.environment().is_empty() || !proposal.files().is_empty();
    let tried = proposals.iter().enumerate().filter(|(_, proposal)| is_tried(proposal));
    let fixes: Vec<Treatment> = tried.map(|(number, proposal)| of_fix(number, proposal)).collect();
    if fixes.is_empty() {
        return Vec::new();
    }
    let sets_variables = |fix: &Treatment| fix.mounts.is_empty();
    let longest = fixes.iter().filter_map(|fix| value(&fix.variables, TUNABLES)).map(OsStr::len).max().unwrap_or(0);
    let variable = sham_environment::variable(value(untreated, TUNABLES), longest);
    let of_variables = variable.filter(|_| fixes.iter().any(sets_variables)).map(|variable| Treatment {
        arm: SHAM_ENVIRONMENT.arm(),
        proposal: None,
        variables: vec![variable],
        mounts: Vec::new(),
    });
    let of_files = (!fixes.iter().all(sets_variables)).then(|| Treatment {
        arm: SHAM_FILES.arm(),
        proposal: None,
        variables: Vec::new(),
        mounts: mounts(&merged(proposals.iter().map(Proposal::files)), as_before),
    });
    let baseline = Treatment { arm: UNTREATED.arm(), proposal: None, variables: Vec::new(), mounts: Vec::new() };
    std::iter::once(baseline).chain(fixes).chain(of_variables).chain(of_files).collect()
}

fn of_fix(number: usize, proposal: &Proposal) -> Treatment {
    let (name, title) = (proposal.plan.name.clone(), proposal.plan.title.clone());
    let sham = if proposal.files().is_empty() { SHAM_ENVIRONMENT.name } else { SHAM_FILES.name };
    Treatment {
        arm: Arm { name, title, role: Role::Fix, sham: Some(sham.to_owned()) },
        proposal: Some(number),
        variables: proposal.environment(),
        mounts: mounts(proposal.files(), |file| &file.after),
    }
}

fn as_before(file: &TreatedFile) -> &FilePermissions {
    &file.before
}

fn value<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    variables.iter().rfind(|(one, _)| one == name).map(|(_, value)| value.as_os_str())
}

/// Bytes that the kernel puts on the stack for an environment: `NAME=VALUE` with its end, and a pointer (execve(2)).
fn size(variables: &[(OsString, OsString)]) -> usize {
    variables.iter().map(|(name, value)| name.len() + value.len() + 2 + size_of::<usize>()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_fix::{Change, FixPlan, Privilege, Scope, Trial};
    use slowpath_launch::ReadyWhen;
    use slowpath_session::target::Invocation;

    fn proposal(name: &str, variable: Option<(&str, &str)>) -> Proposal {
        Proposal {
            plan: FixPlan {
                fix: name.to_owned(),
                name: name.to_owned(),
                title: format!("the fix {name}"),
                changes: Vec::<Change>::new(),
                scope: Scope::Launch,
                privilege: Privilege::User,
                side_effects: Vec::new(),
                price: String::new(),
                security_cost: String::new(),
                undo: String::new(),
                trial: Trial { possible: variable.is_some(), how: String::new() },
                treatment: match variable {
                    Some((name, value)) => slowpath_fix::Treatment::variable(name, value),
                    None => slowpath_fix::Treatment::None,
                },
            },
            findings: vec![0],
            predicted: None,
            gap: None,
            caution: None,
        }
    }

    fn target(env: &[&str]) -> Target {
        let env = env.iter().map(OsString::from).collect();
        let arguments = Invocation { user: None, ready: ReadyWhen::Exit, timeout: None, env };
        Target::of(arguments, vec!["true".into()], None).unwrap()
    }

    #[test]
    fn every_fix_that_can_be_tried_is_an_arm_between_the_untreated_launch_and_a_sham() {
        let proposals = [
            proposal("first", Some((TUNABLES, "glibc.malloc.mmap_threshold=4194304"))),
            proposal("source", None),
            proposal("second", Some(("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"))),
        ];
        let target = target(&["GLIBC_TUNABLES=glibc.malloc.arena_max=1"]);
        let arms = choose(&target, &proposals);
        let told: Vec<_> = arms.iter().map(|arm| (arm.arm.name.as_str(), arm.arm.role, arm.proposal)).collect();
        assert_eq!(
            told,
            [
                ("untreated", Role::Baseline, None),
                ("first", Role::Fix, Some(0)),
                ("second", Role::Fix, Some(2)),
                ("sham_environment", Role::Sham, None)
            ]
        );
        let of = |arm: usize, name: &str| {
            value(&arms[arm].target.variables(), name).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(of(0, TUNABLES).as_deref(), Some("glibc.malloc.arena_max=1"));
        assert_eq!(of(1, TUNABLES).as_deref(), Some("glibc.malloc.mmap_threshold=4194304"));
        assert!(of(2, "LD_PRELOAD").unwrap().ends_with("libjemalloc.so.2"));
        assert!(of(3, TUNABLES).unwrap().starts_with("glibc.malloc.arena_max=1:glibc.malloc.perturb=0"));
        let sizes: Vec<usize> = arms.iter().map(|arm| size(&arm.target.variables()) + arm.padding).collect();
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
        assert!(arms[0].padding > 0 && arms.iter().any(|arm| arm.padding == 0));
    }

    #[test]
    fn a_fix_of_files_has_a_sham_of_its_own_in_the_same_mounts() {
        let file = |path: &str| TreatedFile {
            path: path.into(),
            identity: (8, 1, 5),
            uid: 0,
            gid: 0,
            before: FilePermissions { mode: 0o100_600, acl: None },
            after: FilePermissions { mode: 0o100_604, acl: None },
            only: std::collections::BTreeSet::new(),
        };
        let grants = |path: &str| {
            let mut grants = proposal("grant_read", None);
            grants.plan.trial.possible = true;
            grants.plan.treatment = slowpath_fix::Treatment::Files { files: vec![file(path)] };
            grants
        };
        let variables = proposal("first", Some((TUNABLES, "glibc.malloc.mmap_threshold=4194304")));
        let arms = choose(&target(&[]), &[grants("/a"), variables, grants("/b")]);
        let names: Vec<_> = arms.iter().map(|arm| (arm.arm.name.as_str(), arm.arm.sham.as_deref())).collect();
        let expected = [
            ("untreated", None),
            ("grant_read", Some("sham_files")),
            ("first", Some("sham_environment")),
            ("grant_read", Some("sham_files")),
            ("sham_environment", None),
            ("sham_files", None),
        ];
        assert_eq!(names, expected);
        let have_mounts: Vec<bool> = arms.iter().map(|arm| arm.target.has_mounts()).collect();
        assert_eq!(have_mounts, [false, true, false, true, false, true]);
        // Without a fix that sets variables there is no sham of these.
        let names: Vec<_> = choose(&target(&[]), &[grants("/a")]).into_iter().map(|arm| arm.arm.name).collect();
        assert_eq!(names, ["untreated", "grant_read", "sham_files"]);
    }

    #[test]
    fn without_a_fix_to_try_there_is_nothing_to_launch() {
        assert!(choose(&target(&[]), &[proposal("source", None)]).is_empty());
        assert!(choose(&target(&[]), &[]).is_empty());
    }
}
