//! The arms of a warm diagnosis: the launch as it is, with each fix that can be tried, and with a sham of each kind of fix.
//!
//! Owns that all environments are of one size: variables that a fix adds are made up for by padding elsewhere, so that no arm has
//! another place of the stack than the others in its block.

use super::python_preload::PythonPreloads;
use super::regenerated::{self, Regenerated};
use crate::file_trial::{merged, mounts};
use slowpath_fix::allocator_tunables::VARIABLE as TUNABLES;
use slowpath_fix::{FilePermissions, Proposal, TreatedFile, sham_environment};
use slowpath_launch::{MountNamespace, MountStep};
use slowpath_session::target::Target;
use slowpath_verify::declared_arms::{DeclaredArm, SHAM_ENVIRONMENT, SHAM_FILES, SHAM_REGENERATED, UNTREATED};
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
    seen: Seen,
}

/// How a launch sees files otherwise than they are.
enum Seen {
    /// By these mounts; none: as they are.
    Mounts(Vec<MountStep>),
    /// With the artifacts of the proposal.
    Made(MountNamespace),
    /// With these directories as they are, where a fix has artifacts in them.
    NothingMade(Vec<TreatedFile>),
}

/// The arms, the untreated launch first; nothing where no fix can be tried. `made` is where artifacts were regenerated for fixes, `imports`
/// what has Python import modules for them.
pub fn choose(target: &Target, proposals: &[Proposal], made: &Regenerated, imports: &PythonPreloads) -> Vec<WarmArm> {
    let untreated = target.variables();
    let treatments = treatments(&untreated, proposals, made, imports);
    let targets: Vec<Target> = treatments.iter().map(|one| treated(target, one, proposals)).collect();
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

fn treated(target: &Target, treatment: &Treatment, proposals: &[Proposal]) -> Target {
    let target = target.with(&treatment.variables);
    match (&treatment.seen, treatment.proposal) {
        (Seen::Mounts(mounts), _) if !mounts.is_empty() => target.seeing(mounts.clone()),
        (Seen::Made(made), Some(number)) => regenerated::seeing(&target, &proposals[number], made),
        (Seen::NothingMade(directories), _) => regenerated::sham(&target, directories),
        _ => target,
    }
}

fn treatments(
    untreated: &[(OsString, OsString)],
    proposals: &[Proposal],
    made: &Regenerated,
    imports: &PythonPreloads,
) -> Vec<Treatment> {
    let of = |(number, proposal): (usize, &Proposal)| match made.get(&number) {
        Some(made) => Some(of_made(number, proposal, made.as_ref().ok()?.clone())),
        None => {
            let imports = imports.get(&number).and_then(|one| one.as_ref().ok());
            let variables = proposal.environment().into_iter().chain(imports.cloned()).collect::<Vec<_>>();
            let changes_something = !variables.is_empty() || !proposal.files().is_empty();
            changes_something.then(|| of_fix(number, proposal, variables))
        }
    };
    let fixes: Vec<Treatment> = proposals.iter().enumerate().filter_map(of).collect();
    if fixes.is_empty() {
        return Vec::new();
    }
    let has_sham = |sham: &DeclaredArm| fixes.iter().any(|fix| fix.arm.sham.as_deref() == Some(sham.name));
    let longest = fixes.iter().filter_map(|fix| value(&fix.variables, TUNABLES)).map(OsStr::len).max().unwrap_or(0);
    let variable = sham_environment::variable(value(untreated, TUNABLES), longest);
    let of_variables = variable.filter(|_| has_sham(&SHAM_ENVIRONMENT)).map(|variable| Treatment {
        arm: SHAM_ENVIRONMENT.arm(),
        proposal: None,
        variables: vec![variable],
        seen: Seen::Mounts(Vec::new()),
    });
    let of_files = has_sham(&SHAM_FILES).then(|| Treatment {
        arm: SHAM_FILES.arm(),
        proposal: None,
        variables: Vec::new(),
        seen: Seen::Mounts(mounts(&merged(proposals.iter().map(Proposal::files)), as_before)),
    });
    let of_regenerated = has_sham(&SHAM_REGENERATED).then(|| Treatment {
        arm: SHAM_REGENERATED.arm(),
        proposal: None,
        variables: Vec::new(),
        seen: Seen::NothingMade(merged(proposals.iter().map(Proposal::regenerated))),
    });
    let shams = of_variables.into_iter().chain(of_files).chain(of_regenerated).collect::<Vec<_>>();
    let baseline =
        Treatment { arm: UNTREATED.arm(), proposal: None, variables: Vec::new(), seen: Seen::Mounts(Vec::new()) };
    std::iter::once(baseline).chain(fixes).chain(shams).collect()
}

fn of_fix(number: usize, proposal: &Proposal, variables: Vec<(OsString, OsString)>) -> Treatment {
    let sham = if proposal.files().is_empty() { &SHAM_ENVIRONMENT } else { &SHAM_FILES };
    Treatment {
        arm: arm_of(proposal, sham),
        proposal: Some(number),
        variables,
        seen: Seen::Mounts(mounts(proposal.files(), |file| &file.after)),
    }
}

fn of_made(number: usize, proposal: &Proposal, made: MountNamespace) -> Treatment {
    let arm = arm_of(proposal, &SHAM_REGENERATED);
    Treatment { arm, proposal: Some(number), variables: Vec::new(), seen: Seen::Made(made) }
}

fn arm_of(proposal: &Proposal, sham: &DeclaredArm) -> Arm {
    let (name, title) = (proposal.plan.name.clone(), proposal.plan.title.clone());
    Arm { name, title, role: Role::Fix, sham: Some(sham.name.to_owned()) }
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
            needs: None,
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
        let arms = choose(&target, &proposals, &Regenerated::new(), &PythonPreloads::new());
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
        let arms =
            choose(&target(&[]), &[grants("/a"), variables, grants("/b")], &Regenerated::new(), &PythonPreloads::new());
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
        let names: Vec<_> = choose(&target(&[]), &[grants("/a")], &Regenerated::new(), &PythonPreloads::new())
            .into_iter()
            .map(|arm| arm.arm.name)
            .collect();
        assert_eq!(names, ["untreated", "grant_read", "sham_files"]);
    }

    #[test]
    fn modules_that_no_python_would_find_are_no_arm() {
        let proposals = [proposal("first", None), proposal("second", None)];
        let found = ("PYTHONPATH".into(), "/d/python-preload-1".into());
        let imports = PythonPreloads::from([(0, Ok(found)), (1, Err("it cannot be tried".to_owned()))]);
        let arms = choose(&target(&[]), &proposals, &Regenerated::new(), &imports);
        let tried: Vec<_> = arms.iter().filter_map(|one| one.proposal).collect();
        assert_eq!(tried, [0]);
    }

    #[test]
    fn artifacts_that_were_made_anew_are_an_arm_with_a_sham_of_its_own_and_those_that_were_not_are_none() {
        let regenerates = |path: &str| {
            let mut proposal = proposal("regenerate_artifact", None);
            let permissions = || FilePermissions { mode: 0o40755, acl: None };
            let directory = TreatedFile {
                path: path.into(),
                identity: (8, 1, 5),
                uid: 0,
                gid: 0,
                before: permissions(),
                after: permissions(),
                only: std::collections::BTreeSet::new(),
            };
            proposal.plan.trial.possible = true;
            proposal.plan.treatment =
                slowpath_fix::Treatment::Regeneration { directories: vec![directory], commands: Vec::new() };
            proposal
        };
        let here = MountNamespace::of_process(std::process::id() as i32).unwrap();
        let made = Regenerated::from([(0, Ok(here)), (1, Err("it cannot be tried here".to_owned()))]);
        let arms = choose(&target(&[]), &[regenerates("/a"), regenerates("/b")], &made, &PythonPreloads::new());
        let told: Vec<_> =
            arms.iter().map(|arm| (arm.arm.name.as_str(), arm.proposal, arm.target.has_mounts())).collect();
        assert_eq!(
            told,
            [("untreated", None, false), ("regenerate_artifact", Some(0), true), ("sham_regenerated", None, true)]
        );
        assert_eq!(arms[1].arm.sham.as_deref(), Some("sham_regenerated"));
    }

    #[test]
    fn without_a_fix_to_try_there_is_nothing_to_launch() {
        assert!(
            choose(&target(&[]), &[proposal("source", None)], &Regenerated::new(), &PythonPreloads::new()).is_empty()
        );
        assert!(choose(&target(&[]), &[], &Regenerated::new(), &PythonPreloads::new()).is_empty());
    }
}
