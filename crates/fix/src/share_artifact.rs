//! The fix `share_artifact`: a second copy of the artifacts, in a place that every process which needs them may read.
//!
//! Owns saying where programs of a family look for such a copy, and what the copy is trusted with. It is a step of the installation, so
//! slowpath names it and does not take it.

use crate::artifact_subject::ArtifactSubject;
use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::proposal::Proposal;
use crate::proposal_per_finding;
use crate::treatment::Treatment;
use slowpath_analysis::Finding;
use slowpath_analysis::findings::unreadable_artifact::SHARE_ARTIFACT;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: SHARE_ARTIFACT,
    former: &[],
    title: "a copy of the artifacts that all users read",
    what: "The artifacts are made once more, in a directory that only their maker writes and every user reads; the program is configured \
        to look there.",
    why: "The permissions of the originals stay as they are, and one copy serves every user: a file that is mapped is in memory once for all of \
          them.",
    price: "disk for the copy, and a second place that becomes stale with the sources: the step belongs to each installation. Everybody \
            can read what it holds",
    by_hand: "the variable or option of the family (`slowpath explain python_bytecode`): PYTHONPYCACHEPREFIX=DIRECTORY for Python, \
              -XX:SharedArchiveFile=FILE for the JVM, a <cachedir> in fonts.conf for fonts, NODE_COMPILE_CACHE=DIRECTORY for Node.js. \
              Made by a user who may write there, with a umask of 022. Undo: remove the variable, then the directory",
    trial: "not by slowpath: it does not run the command that makes the copy. Make it, and compare with `slowpath launch --vs`",
    propose: Some(proposals),
};

/// One proposal a finding: each is of another family of files.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let of = ArtifactSubject::of(finding);
    let place = of.family.map(|family| family.shared_by).filter(|place| !place.is_empty());
    FixPlan {
        fix: SHARE_ARTIFACT.to_owned(),
        name: format!("{SHARE_ARTIFACT}{number}"),
        title: format!("{} made once more where {} and others read it", of.artifacts, of.user),
        changes: vec![Change {
            what: format!("where the program looks for {}", of.artifacts),
            from: Some(format!("a place that is of no use to {}", of.user)),
            to: place.unwrap_or("a directory that only its maker writes and every user reads, set by the program's own option").to_owned(),
        }],
        scope: Scope::Machine,
        privilege: Privilege::User,
        side_effects: vec![
            "a process that can use both uses the copy instead of the original: both must come from the same source".to_owned(),
        ],
        price: "disk for the copy, and one more step at each installation; stale where it is forgotten".to_owned(),
        security_cost: "every user can read the copy, and every process executes or trusts what its maker put there: no user who is trusted \
                        less than these processes may write it, and none of them, or one child changes what the others run"
            .to_owned(),
        undo: "remove the variable or option, then the directory".to_owned(),
        trial: Trial { possible: false, how: "make the copy, and compare with `slowpath launch --vs`".to_owned() },
        treatment: Treatment::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::proposed_for;

    #[test]
    fn the_plan_names_where_programs_of_the_family_look_and_what_the_copy_is_trusted_with() {
        let plan = proposed_for(&FIX, "/app/__pycache__/m.cpython-311.pyc");
        assert_eq!(
            plan.title,
            "/app/__pycache__/m.cpython-311.pyc and 3 more of *.pyc made once more where user 7 and others read it"
        );
        assert!(plan.changes[0].to.contains("PYTHONPYCACHEPREFIX"), "{plan:?}");
        assert!(plan.security_cost.contains("may write it") && !plan.trial.possible);
    }

    #[test]
    fn of_a_family_that_nobody_knows_it_says_what_the_place_must_be() {
        assert!(proposed_for(&FIX, "/app/cache/table.cache").changes[0].to.contains("every user reads"));
    }
}
