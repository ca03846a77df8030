//! The arms of a warm diagnosis: the launch as it is, with each fix that can be tried, and with a sham.
//!
//! Owns that all environments are of one size: variables that a fix adds are made up for by padding elsewhere, so that no arm has
//! another place of the stack than the others in its block.

use slowpath_fix::allocator_tunables::VARIABLE as TUNABLES;
use slowpath_fix::{Proposal, sham_environment};
use slowpath_session::target::Target;
use slowpath_verify::{Arm, Role, declared_arms};
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
}

/// The arms, the untreated launch first; nothing where no fix can be tried.
pub fn choose(target: &Target, proposals: &[Proposal]) -> Vec<WarmArm> {
    let untreated = target.variables();
    let treatments = treatments(&untreated, proposals);
    let targets: Vec<Target> = treatments.iter().map(|one| target.with(&one.variables)).collect();
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

fn treatments(untreated: &[(OsString, OsString)], proposals: &[Proposal]) -> Vec<Treatment> {
    let tried = proposals.iter().enumerate().filter(|(_, proposal)| !proposal.environment().is_empty());
    let fixes: Vec<Treatment> = tried
        .map(|(number, proposal)| Treatment {
            arm: Arm { name: proposal.plan.name.clone(), title: proposal.plan.title.clone(), role: Role::Fix },
            proposal: Some(number),
            variables: proposal.environment(),
        })
        .collect();
    if fixes.is_empty() {
        return Vec::new();
    }
    let longest = fixes.iter().filter_map(|fix| value(&fix.variables, TUNABLES)).map(OsStr::len).max().unwrap_or(0);
    let sham = sham_environment::variable(value(untreated, TUNABLES), longest).map(|variable| Treatment {
        arm: declared_arms::SHAM_ENVIRONMENT.arm(),
        proposal: None,
        variables: vec![variable],
    });
    let baseline = Treatment { arm: declared_arms::UNTREATED.arm(), proposal: None, variables: Vec::new() };
    std::iter::once(baseline).chain(fixes).chain(sham).collect()
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
    fn without_a_fix_to_try_there_is_nothing_to_launch() {
        assert!(choose(&target(&[]), &[proposal("source", None)]).is_empty());
        assert!(choose(&target(&[]), &[]).is_empty());
    }
}
