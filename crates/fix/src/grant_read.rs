//! The fix `grant_read`: the user of a process may read the artifacts that it was denied.
//!
//! Owns the plan: which permissions change, who else can read the files then, and how the change is taken back. Which file denies, and the
//! smallest change of it, says who can look at the files ([`name_changes`]); until then the plan names the artifact alone, and cannot be
//! tried. A trial changes no file: its launches see the files with the change, in mounts of their own.

use crate::case::Case;
use crate::declaration::Declaration;
use crate::not_triable::NotTriable;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::proposal::{Lookup, Proposal, gap};
use crate::proposal_per_finding;
use crate::treatment::{TreatedFile, Treatment};
use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::findings::unreadable_artifact::GRANT_READ;
use std::collections::BTreeSet;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: GRANT_READ,
    former: &[],
    title: "the user may read the artifact",
    what: "One more permission bit on each file or directory that denies access (chmod), or an entry of its ACL for the user (setfacl).",
    why: "The process, and every later one, reads the result instead of repeating the work.",
    price: "chmod o+r or o+x lets every user read; an ACL entry lets in the one user. The source of compiled code is mostly readable \
            anyway, caches of private data are not",
    by_hand: "`sudo slowpath artifacts audit --recording DIR` names the file that denies and the change; undo with the opposite chmod, or \
              getfacl -p FILE before and setfacl --restore afterwards. What made the file so (umask at installation, a build as root) \
              makes the next one so too. Instead: a second copy where its users may read it and only its owner may write (for Python \
              PYTHONPYCACHEPREFIX, for fonts a cache of the system); or the process runs as the owner, which drops its isolation: what it \
              parses can then read and write all that the owner can",
    trial: "launches that see the changed files in private mounts (needs root); the sham sees the unchanged files in the same mounts",
    propose: Some(proposals),
};

/// What denies one user, and what would let it in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repair {
    /// The file or directory whose rule denies.
    pub path: String,
    /// The rule in words.
    pub rule: String,
    /// The commands, for a shell.
    pub commands: String,
}

/// What denies one user the artifacts of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repairs {
    /// The changes, for a reader.
    pub repairs: BTreeSet<Repair>,
    /// What launches of a trial see, or why there can be none.
    pub trial: Result<Vec<TreatedFile>, NotTriable>,
}

/// One proposal a finding: each is of another family of files.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    let made = proposal_per_finding::proposals(case.findings, plan).into_iter();
    made.map(|one| Proposal { needs: Some(Lookup::DenyingFiles), ..one }).collect()
}

fn subject<'a>(finding: &'a Finding, name: &str) -> &'a str {
    finding.subject.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn uid(finding: &Finding) -> Option<u32> {
    u32::try_from(finding.subject.get("uid")?.as_u64()?).ok()
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let artifact = subject(finding, "artifact");
    let others = finding.subject.get("artifacts").and_then(Value::as_u64).unwrap_or(1).saturating_sub(1);
    let more = if others > 0 { format!(" and {others} more of {}", subject(finding, "family")) } else { String::new() };
    let user = uid(finding).map_or_else(|| "the user of the process".to_owned(), |uid| format!("user {uid}"));
    FixPlan {
        fix: GRANT_READ.to_owned(),
        name: format!("{GRANT_READ}{number}"),
        title: format!("{user} may read {artifact}{more}"),
        changes: vec![Change {
            what: format!("permissions on the path to {artifact}{more}"),
            from: Some(format!("{user} is denied")),
            to: format!("{user} may read; `slowpath artifacts audit` names the file that denies and the change"),
        }],
        scope: Scope::Machine,
        privilege: Privilege::Root,
        side_effects: vec!["what made the files unreadable (a umask, a build as root) does so at the next installation".to_owned()],
        price: "none in time or memory; the next installation may need it again".to_owned(),
        security_cost: "whoever gets in by the changed bit can read the files: every user for `o`, the group for `g`; to let in one user \
                        alone, setfacl -m u:UID:r FILE (x for directories)"
            .to_owned(),
        undo: "`slowpath fix undo`, where `slowpath fix apply --permissions` made the change; by hand chmod with - for +, or getfacl -p FILE \
               before and setfacl --restore afterwards"
            .to_owned(),
        trial: Trial {
            possible: false,
            how: "what denies is not known: `slowpath artifacts audit` names it; make the change, and compare with `slowpath launch --user`"
                .to_owned(),
        },
        treatment: Treatment::None,
    }
}

/// How it is tried, where it can be.
const HOW: &str = "launches that see these files with the change, in mounts of their own, beside launches that see them as they are in the \
                   same mounts; no file is changed";

/// Puts in what is to be changed and tried, as far as `look` knows it for the artifacts of a finding and a user. `findings` are those that
/// the proposals were made from.
pub fn name_changes(
    proposals: &mut [Proposal],
    findings: &[Finding],
    mut look: impl FnMut(&BTreeSet<&str>, u32) -> Option<Repairs>,
) {
    for proposal in proposals.iter_mut().filter(|proposal| proposal.needs == Some(Lookup::DenyingFiles)) {
        let of = proposal.findings.first().and_then(|number| findings.get(*number));
        let Some((finding, uid)) = of.and_then(|finding| Some((finding, uid(finding)?))) else { continue };
        let paths: BTreeSet<&str> = finding.fix_inputs.artifacts.iter().map(String::as_str).collect();
        // One directory may deny all of them.
        let Some(found) = look(&paths, uid).filter(|found| !found.repairs.is_empty()) else { continue };
        proposal.needs = None;
        let plan = &mut proposal.plan;
        plan.changes = found
            .repairs
            .into_iter()
            .map(|repair| Change {
                what: format!("permissions of {}", repair.path),
                from: Some(format!("{} for user {uid}", repair.rule)),
                to: repair.commands,
            })
            .collect();
        match found.trial {
            Ok(files) => {
                plan.treatment = Treatment::Files { files };
                plan.trial = Trial { possible: true, how: HOW.to_owned() };
            }
            Err(not) => {
                plan.trial = Trial { possible: false, how: format!("{}: {}", not.reason, not.remedy) };
                proposal.gap = Some(gap(GRANT_READ, &not.reason, &not.remedy));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, proposed};
    use crate::treatment::FilePermissions;
    use slowpath_analysis::finding::row;

    fn denied(uid: Option<u32>) -> Finding {
        let mut one = finding(GRANT_READ, 10.0);
        one.subject.extend(row([
            ("artifact", "/a/c/m.pyc".into()),
            ("artifacts", 3.into()),
            ("family", "*.pyc".into()),
        ]));
        if let Some(uid) = uid {
            one.subject.insert("uid".to_owned(), uid.into());
        }
        one.fix_inputs.artifacts.extend(["m", "n"].map(|name| format!("/a/c/{name}.pyc")));
        one
    }

    #[test]
    fn the_plan_names_the_artifact_and_then_each_file_that_denies_once() {
        let findings = [denied(Some(1000))];
        let made = proposed(&FIX, &findings, &crate::Program::default(), &[], &Machine::default());
        assert_eq!(made[0].plan.title, "user 1000 may read /a/c/m.pyc and 2 more of *.pyc");
        assert!(!made[0].plan.trial.possible && made[0].plan.scope == Scope::Machine);
        assert_eq!(made[0].needs, Some(Lookup::DenyingFiles));
        assert!(made[0].predicted.unwrap().value < 0.0);
        let mut asked = Vec::new();
        let file = TreatedFile {
            path: "/a/c".into(),
            identity: (8, 1, 5),
            uid: 0,
            gid: 0,
            before: FilePermissions { mode: 0o40700, acl: None },
            after: FilePermissions { mode: 0o40701, acl: None },
            only: BTreeSet::new(),
        };
        let repairs = Repairs {
            repairs: [Repair {
                path: "/a/c".to_owned(),
                rule: "other bits lack x".to_owned(),
                commands: "chmod o+x /a/c".to_owned(),
            }]
            .into(),
            trial: Ok(vec![file.clone()]),
        };
        let mut answer = |found: &Repairs| {
            let mut made = made.clone();
            name_changes(&mut made, &findings, |paths, uid| {
                asked.push((paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>(), uid));
                Some(found.clone())
            });
            made.remove(0)
        };
        let tried = answer(&repairs);
        let [change] = &tried.plan.changes[..] else { panic!("{tried:#?}") };
        assert_eq!((change.what.as_str(), change.to.as_str()), ("permissions of /a/c", "chmod o+x /a/c"));
        assert_eq!(change.from.as_deref(), Some("other bits lack x for user 1000"));
        assert!(tried.plan.trial.possible && tried.gap.is_none() && tried.needs.is_none());
        assert_eq!(tried.plan.treatment.files(), [file]);
        let not = NotTriable { reason: "mounts need root".to_owned(), remedy: "sudo".to_owned() };
        let shown = answer(&Repairs { trial: Err(not), ..repairs });
        assert!(!shown.plan.trial.possible && shown.plan.treatment == Treatment::None);
        assert_eq!(shown.gap.unwrap().reason, "mounts need root");
        assert_eq!(asked, vec![(vec!["/a/c/m.pyc".to_owned(), "/a/c/n.pyc".to_owned()], 1000); 2]);
    }

    #[test]
    fn without_a_user_or_an_answer_the_plan_stays_as_it_is() {
        for (uid, is_asked) in [(None, false), (Some(7), true)] {
            let findings = [denied(uid)];
            let mut made = proposed(&FIX, &findings, &crate::Program::default(), &[], &Machine::default());
            let before = made.clone();
            let mut asked = false;
            name_changes(&mut made, &findings, |_, _| {
                asked = true;
                None
            });
            assert_eq!((made, asked), (before, is_asked));
        }
    }
}
