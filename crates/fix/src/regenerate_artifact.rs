//! The fix `regenerate_artifact`: a stale or missing artifact is made by a user who may save it.
//!
//! Owns saying with which command, as far as the family of the artifact is known. The command is the program's own or its package's, and it
//! writes what every later process trusts, so slowpath names it and does not run it.

use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::proposal::{Case, Proposal};
use crate::proposal_per_finding;
use crate::treatment::Treatment;
use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::findings::stale_artifact::REGENERATE_ARTIFACT;
use slowpath_artifacts::families;
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
    trial: "not by slowpath: the command is the program's own. Run it on a copy of the program, and compare with `slowpath launch --vs`",
};

/// One proposal a finding: each is of another family of files.
pub fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let text = |name: &str| finding.subject.get(name).and_then(Value::as_str).unwrap_or_default();
    let artifact = text("artifact");
    let others = finding.subject.get("artifacts").and_then(Value::as_u64).unwrap_or(1).saturating_sub(1);
    let more = if others > 0 { format!(" and {others} more of {}", text("family")) } else { String::new() };
    let by_hand = families::of_file(Path::new(artifact)).map(|family| family.by_hand);
    FixPlan {
        fix: REGENERATE_ARTIFACT.to_owned(),
        name: format!("{REGENERATE_ARTIFACT}{number}"),
        title: format!("{artifact}{more} made anew by a user who may save it"),
        changes: vec![Change {
            what: format!("the files {artifact}{more}"),
            from: None,
            to: by_hand
                .unwrap_or("start the program once as a user who may write there, with a umask of 022")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposal::Machine;
    use crate::proposal::tests::{finding, proposed};
    use slowpath_analysis::finding::row;

    fn made(artifact: &str) -> FixPlan {
        let mut one = finding(REGENERATE_ARTIFACT, "", 30.0);
        one.subject.extend(row([("artifact", artifact.into()), ("artifacts", 4.into()), ("family", "*.pyc".into())]));
        let made = proposed(&[one], &crate::Program::default(), &[], &Machine::default()).remove(0);
        assert!(!made.plan.trial.possible && made.predicted.unwrap().value < 0.0);
        made.plan
    }

    #[test]
    fn the_plan_names_the_command_of_the_family() {
        let plan = made("/app/__pycache__/m.cpython-311.pyc");
        assert_eq!(
            plan.title,
            "/app/__pycache__/m.cpython-311.pyc and 3 more of *.pyc made anew by a user who may save it"
        );
        assert!(plan.changes[0].to.contains("python3 -m compileall"), "{plan:?}");
    }

    #[test]
    fn of_a_family_that_nobody_knows_it_says_whom_to_start_it_as() {
        assert!(made("/app/cache/table.cache").changes[0].to.contains("as a user who may write there"));
    }
}
