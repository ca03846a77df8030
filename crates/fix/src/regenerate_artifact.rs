//! The fix `regenerate_artifact`: a stale or missing artifact is made by a user who may save it.
//!
//! Owns the plan: what makes it, as far as the family of the artifact is known, and who does that. In which directories it is made says
//! who can look at them ([`name_directories`]); until then the plan cannot be tried. A trial makes the artifacts once, as the target's
//! user, where its launches alone see them: what makes them writes what every later process trusts, so slowpath runs it nowhere else.

use crate::artifact_subject::ArtifactSubject;
use crate::declaration::Declaration;
use crate::not_triable::NotTriable;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::proposal::{Case, Proposal, gap};
use crate::proposal_per_finding;
use crate::treatment::{TreatedFile, Treatment};
use crate::word::Word;
use slowpath_analysis::Finding;
use slowpath_analysis::findings::stale_artifact::REGENERATE_ARTIFACT;
use std::collections::BTreeSet;
use std::path::Path;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: REGENERATE_ARTIFACT,
    former: &[],
    title: "the artifact is made once, by a user who may save it",
    what: "The command that makes the artifact runs as its owner: at installation, and whenever what it is made from changes.",
    why: "Processes that may not save the result do the work at each start. Once it is saved where they look for it, they read it.",
    price: "disk, and a step more at each installation; where that is forgotten, the artifact is stale again",
    by_hand: "the command of the family (`slowpath explain python_bytecode`), with a umask of 022; where the place may not be written at all, one \
              of its own for the user (PYTHONPYCACHEPREFIX=DIRECTORY for Python); `slowpath artifacts guard POLICY --repair` does it when a product starts",
    trial: "the command of the family, and then the program itself, is launched once as the target's user, to whom the directories \
            belong in mounts of its own; the launches of the trial see what it made there, read-only (needs root). The sham sees the same directories in such \
            mounts, with nothing made. No file is changed, and no set-user-ID program gives privileges in these launches",
};

/// How it is tried, where it can be.
const HOW: &str = "what makes the artifacts is launched once as the target's user, where the directories are seen as its own; launches that see \
                   what it made, beside launches that see the directories as they are in the same mounts; no file is changed";

/// Where artifacts of a finding are made for a trial.
pub type Directories = Result<Vec<TreatedFile>, NotTriable>;

/// One proposal a finding: each is of another family of files.
pub fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let ArtifactSubject { artifacts, family, .. } = ArtifactSubject::of(finding);
    FixPlan {
        fix: REGENERATE_ARTIFACT.to_owned(),
        name: format!("{REGENERATE_ARTIFACT}{number}"),
        title: format!("{artifacts} made anew by a user who may save it"),
        changes: vec![Change {
            what: format!("the files {artifacts}"),
            from: None,
            to: family
                .map_or("start the program once as a user who may write there, with a umask of 022", |one| one.by_hand)
                .to_owned(),
        }],
        scope: Scope::Machine,
        privilege: Privilege::Root,
        side_effects: vec!["what is made so is stale when its source changes: the step belongs to the installation".to_owned()],
        price: "disk for the files, and a step more at each installation".to_owned(),
        security_cost: "the command runs as the owner of the files: it must come from whom they come from, and no other user may write there"
            .to_owned(),
        undo: "none is needed: files that it made can be removed".to_owned(),
        trial: Trial { possible: false, how: "run that command on a copy of the program, and compare with `slowpath launch --vs`".to_owned() },
        treatment: Treatment::None,
    }
}

/// Puts in what is tried, as far as `look` knows the directories for the artifacts of a finding and a user. `findings` are those that the
/// proposals were made from.
pub fn name_directories(
    proposals: &mut [Proposal],
    findings: &[Finding],
    mut look: impl FnMut(&BTreeSet<&Path>, u32) -> Option<Directories>,
) {
    for proposal in proposals.iter_mut().filter(|proposal| proposal.plan.fix == REGENERATE_ARTIFACT) {
        let of = proposal.findings.first().and_then(|number| findings.get(*number));
        let uid = |finding: &Finding| u32::try_from(finding.subject.get("uid")?.as_u64()?).ok();
        let Some((finding, uid)) = of.and_then(|finding| Some((finding, uid(finding)?))) else { continue };
        let rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
        let artifacts: BTreeSet<&Path> =
            rows.filter_map(|row| Some(Path::new(row.get("artifact")?.as_str()?))).collect();
        let plan = &mut proposal.plan;
        match look(&artifacts, uid) {
            None => {}
            Some(Ok(directories)) => {
                let commands = commands(finding, &artifacts);
                plan.treatment = Treatment::Regeneration { directories, commands };
                plan.trial = Trial { possible: true, how: HOW.to_owned() };
            }
            Some(Err(not)) => {
                plan.trial = Trial { possible: false, how: format!("{}: {}", not.reason, not.remedy) };
                proposal.gap = Some(gap(REGENERATE_ARTIFACT, &not.reason, &not.remedy));
            }
        }
    }
}

fn commands(finding: &Finding, artifacts: &BTreeSet<&Path>) -> Vec<Vec<Word>> {
    let Some(family) = ArtifactSubject::of(finding).family else { return Vec::new() };
    let paths: Vec<&Path> = artifacts.iter().copied().collect();
    let words = |command: Vec<std::ffi::OsString>| command.iter().map(|word| Word::from(word.as_os_str())).collect();
    family.regeneration.commands(&paths).into_iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact_subject::tests::proposed_for;
    use crate::proposal::Machine;
    use crate::proposal::tests::{finding, proposed};
    use crate::treatment::FilePermissions;
    use slowpath_analysis::finding::row;

    #[test]
    fn the_plan_names_the_command_of_the_family() {
        let plan = proposed_for(REGENERATE_ARTIFACT, "/app/__pycache__/m.cpython-311.pyc");
        assert_eq!(
            plan.title,
            "/app/__pycache__/m.cpython-311.pyc and 3 more of *.pyc made anew by a user who may save it"
        );
        assert!(plan.changes[0].to.contains("python3 -m compileall") && !plan.trial.possible, "{plan:?}");
    }

    #[test]
    fn of_a_family_that_nobody_knows_it_says_whom_to_start_it_as() {
        let plan = proposed_for(REGENERATE_ARTIFACT, "/app/cache/table.cache");
        assert!(plan.changes[0].to.contains("as a user who may write there"));
    }

    #[test]
    fn a_trial_has_the_commands_of_the_family_or_the_program_itself_or_a_reason_why_there_is_none() {
        let directory = TreatedFile {
            path: "/app".into(),
            identity: (8, 1, 5),
            uid: 0,
            gid: 0,
            before: FilePermissions { mode: 0o40755, acl: None },
            after: FilePermissions { mode: 0o40755, acl: None },
            only: BTreeSet::new(),
        };
        let tried = |names: &[&str], answer: Directories| {
            let mut one = finding(REGENERATE_ARTIFACT, "", 10.0);
            one.subject.extend(row([("artifact", names[0].into()), ("artifacts", 2.into()), ("uid", 1000.into())]));
            one.evidence[0].rows.extend(names.iter().map(|name| row([("artifact", (*name).into())])));
            let findings = [one];
            let mut made = proposed(&findings, &crate::Program::default(), &[], &Machine::default());
            name_directories(&mut made, &findings, |paths, uid| {
                assert_eq!((paths.len(), uid), (names.len(), 1000));
                Some(answer.clone())
            });
            made.remove(0)
        };
        let made = tried(
            &["/app/__pycache__/m.cpython-311.pyc", "/app/__pycache__/n.cpython-311.opt-2.pyc"],
            Ok(vec![directory.clone()]),
        );
        assert_eq!(made.regenerated(), std::slice::from_ref(&directory));
        let Treatment::Regeneration { commands, .. } = &made.plan.treatment else { panic!("{made:#?}") };
        let words = |level: &[&str]| {
            let all = ["python3.11", "-m", "compileall", "-q", "-f", "-l"].iter().chain(level).chain(&["/app"]);
            all.map(|word| Word::from(*word)).collect::<Vec<_>>()
        };
        assert_eq!(*commands, [words(&[]), words(&["-o", "2"])]);
        let made = tried(&["/app/cache/table.cache"], Ok(vec![directory]));
        assert_eq!(made.plan.treatment.regenerated().len(), 1);
        assert!(matches!(&made.plan.treatment, Treatment::Regeneration { commands, .. } if commands.is_empty()));
        let not = NotTriable { reason: "mounts need root".to_owned(), remedy: "sudo".to_owned() };
        let made = tried(&["/app/cache/table.cache"], Err(not));
        assert!(made.regenerated().is_empty() && made.gap.is_some(), "{made:#?}");
        assert_eq!(made.plan.trial.how, "mounts need root: sudo");
    }
}
