//! The fix `drop_isolation`: the process runs as a user who may use the artifacts.
//!
//! Owns saying what that gives up. It is the last resort, listed so that its price stands beside that of the others.

use crate::artifact_subject::ArtifactSubject;
use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::proposal::Proposal;
use crate::proposal_per_finding;
use crate::treatment::Treatment;
use slowpath_analysis::Finding;
use slowpath_analysis::findings::unreadable_artifact::DROP_ISOLATION;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: DROP_ISOLATION,
    former: &[],
    title: "the process runs as a user who may use the artifacts",
    what: "The process is no longer started under a user of its own, but as the owner of the artifacts or in a group that may read them.",
    why: "A process that may read the result need not repeat the work.",
    price: "none in time; the boundary between the process and its owner is gone (see the security cost). Prefer grant_read or \
            share_artifact, which open the artifacts alone",
    by_hand: "User=, Group= or SupplementaryGroups= of the systemd unit; `android:isolatedProcess=\"false\"` of an Android service. A group \
              that may read the artifacts and nothing else keeps most of the isolation. Undo: set it back",
    trial: "not by slowpath: compare with `slowpath launch --user OWNER`",
    propose: Some(proposals),
};

/// One proposal a finding: each is of another family of files.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let of = ArtifactSubject::of(finding);
    FixPlan {
        fix: DROP_ISOLATION.to_owned(),
        name: format!("{DROP_ISOLATION}{number}"),
        title: format!("{} runs as a user who may read {}", of.process, of.artifacts),
        changes: vec![Change {
            what: format!("the user of {}", of.process),
            from: Some(of.user.clone()),
            to: "the owner of the artifacts; or, with less loss of isolation, one more group that may read them".to_owned(),
        }],
        scope: Scope::Machine,
        privilege: Privilege::Root,
        side_effects: vec![
            "new files of the process belong to that user, and it may signal, trace and exhaust whatever that user may".to_owned(),
        ],
        price: "none in time or memory".to_owned(),
        security_cost: "an error in the process, in what it parses for example, then reads and writes everything that this user can, and \
                        signals and traces its processes: what the isolation was there to prevent. A group of its own for the artifacts \
                        costs least"
            .to_owned(),
        undo: "start the process as the user before".to_owned(),
        trial: Trial { possible: false, how: "compare with `slowpath launch --user OWNER`".to_owned() },
        treatment: Treatment::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::proposed_for;

    #[test]
    fn the_plan_says_who_runs_as_whom_and_what_that_gives_up() {
        let plan = proposed_for(&FIX, "/app/app.jsa");
        assert_eq!(plan.title, "child runs as a user who may read /app/app.jsa and 3 more of *.pyc");
        assert_eq!(plan.changes[0].from.as_deref(), Some("user 7"));
        assert!(plan.security_cost.contains("reads and writes everything that this user can") && !plan.trial.possible);
    }
}
