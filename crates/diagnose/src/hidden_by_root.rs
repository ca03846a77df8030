//! What a launch as root cannot show: it reads files that another user may not read, so that nothing is denied and nothing is found.
//!
//! Decided for the user as whom most of its children run that are not root's; without these for the user who called sudo, or else for one
//! who owns nothing. By the access evaluator, on the files as they are now.

use crate::case::Case;
use crate::directory::{COLD, WARM};
use crate::printed::{DenyingRule, HiddenArtifact, HiddenByRoot};
use slowpath_artifacts::access;
use slowpath_artifacts::audit::{Artifact, Limits, State, audit};
use slowpath_artifacts::families::is_artifact;
use slowpath_artifacts::gather::Machine;
use slowpath_launch::Identity;
use slowpath_process::NOBODY;
use slowpath_recording::Recording;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::{Exec, File, FileKey, Open, ProcessKey, RefusedCall, Unavailable};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Artifacts and rules that are listed, at most; all artifacts are counted.
const MOST: usize = 20;

/// What is hidden, and what could not be looked at; `None` where the target does not run as root.
///
/// # Errors
/// The recordings, the user database or /proc cannot be read, or the user asked to stop.
pub fn look(case: &Case<'_>) -> Result<Option<(HiddenByRoot, Vec<Unavailable>)>, Failure> {
    let target = &case.target.identity;
    if target.uid != 0 {
        return Ok(None);
    }
    case.progress.step("looking for what root hides");
    let (used, children): (BTreeSet<String>, Option<u32>) =
        as_user(target, &Work::reading("looking for what root hides"), || {
            let (mut used, mut execs) = (BTreeSet::new(), Vec::new());
            for place in [WARM, COLD].map(|name| case.directory.join(name)).iter().filter(|place| place.exists()) {
                let recording = Recording::open(place).map_err(failed(Kind::Usage))?;
                let executed = recording.read_whole::<Exec>().0;
                used.extend(opened_by_root(&recording, &executed));
                execs.extend(executed);
            }
            Ok((used, user_of_children(&execs)))
        })?;
    let other = children.and_then(|uid| Some(Identity::known_as(&uid.to_string()).ok()?.0));
    let other = other.map_or_else(another_user, Ok)?;
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    as_user(&caller, &Work::reading("looking for what root hides"), || {
        let machine =
            Machine::read().map_err(|error| Failure::new(Kind::Machine, format!("/proc cannot be read: {error}")))?;
        let identity = access::Identity::new(other.uid, other.gid, other.groups.clone());
        let identity = access::Identity { confinement: machine.confinement(), ..identity };
        let paths: Vec<&Path> = used.iter().map(Path::new).collect();
        let found = audit(&machine, &identity, &paths, Limits::DEFAULT, &mut |_| {});
        Ok(Some((summary(other.uid, &found.artifacts), found.unavailable)))
    })
}

/// Artifacts that processes of root opened in a recording.
fn opened_by_root(recording: &Recording, execs: &[Exec]) -> BTreeSet<String> {
    let of_others: BTreeSet<ProcessKey> = execs.iter().filter(|exec| exec.uid != 0).map(Exec::process).collect();
    let files = recording.read_whole::<File>().0;
    let opens = recording.read_whole::<Open>().0;
    let opened = used_artifacts(&files, &opens, |open| open.result >= 0 && !of_others.contains(&open.process()));
    opened.into_iter().map(str::to_owned).collect()
}

/// The user who is not root and has executed most programs of the launch.
fn user_of_children(execs: &[Exec]) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    execs.iter().filter(|exec| exec.uid != 0).for_each(|exec| *counts.entry(exec.uid).or_default() += 1);
    counts.into_iter().max_by_key(|(uid, count)| (*count, Reverse(*uid))).map(|(uid, _)| uid)
}

/// Paths of the artifacts among what was opened, as far as it `counts`: no directories, which some families hold as a whole.
pub fn used_artifacts<'a>(files: &[File], opens: &'a [Open], counts: impl Fn(&Open) -> bool) -> BTreeSet<&'a str> {
    let directories: BTreeSet<FileKey> = files.iter().filter(|file| file.directory).map(File::file).collect();
    let is_directory = |open: &Open| {
        let flags = open.flags & (libc::O_DIRECTORY | libc::O_PATH) as u32;
        let file = open.dev.zip(open.ino).map(|(dev, ino)| FileKey { dev, ino });
        let makes_one = open.call == Some(RefusedCall::MakeDirectory);
        makes_one || flags != 0 || file.is_some_and(|file| directories.contains(&file))
    };
    let wanted = opens.iter().filter(|open| counts(open) && !is_directory(open)).map(|open| open.path.as_str());
    wanted.filter(|path| Path::new(path).is_absolute() && is_artifact(Path::new(path))).collect()
}

/// The user who called sudo, or one who owns nothing and is in no group.
fn another_user() -> Result<Identity, Failure> {
    let invoker = invoker()?;
    if invoker.uid != 0 {
        return Ok(invoker);
    }
    Ok(Identity::known_as(&NOBODY.to_string()).map_err(failed(Kind::Machine))?.0)
}

fn summary(uid: u32, artifacts: &[Artifact]) -> HiddenByRoot {
    let count = |state| artifacts.iter().filter(|one| one.state == state).count() as u64;
    let denied = || {
        let unreadable = artifacts.iter().filter(|one| one.state == State::Unreadable);
        unreadable.filter_map(|one| Some((one, one.denied_by.as_ref()?)))
    };
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (_, by) in denied() {
        *counts.entry((&by.path, &by.words)).or_default() += 1;
    }
    let mut rules: Vec<DenyingRule> = counts
        .into_iter()
        .map(|((path, rule), artifacts)| DenyingRule { path: path.to_owned(), rule: rule.to_owned(), artifacts })
        .collect();
    rules.sort_by_key(|rule| Reverse(rule.artifacts));
    rules.truncate(MOST);
    let listed = denied().take(MOST).map(|(one, by)| HiddenArtifact {
        path: one.path.clone(),
        family: one.family.clone(),
        denied_by: by.path.clone(),
        change: one.change.clone(),
    });
    HiddenByRoot {
        uid,
        used: artifacts.len() as u64,
        unreadable: count(State::Unreadable),
        unknown: count(State::Unknown),
        rules,
        artifacts: listed.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_artifacts::access::{Access, Rule};
    use slowpath_artifacts::audit::DeniedBy;
    use slowpath_recording::Tables;

    #[test]
    fn opened_artifacts_count_and_directories_searches_and_other_files_do_not() {
        let tables = Tables::from_text(
            "
== opens
ts pid start tid path                   flags result dev ino
1  7   1     7   /a/__pycache__/m.pyc   0     3      1   10
2  7   1     7   /a/__pycache__/n.pyc   0     -2     -   -
3  7   1     7   /a/__pycache__         65536 3      1   11
4  7   1     7   __pycache__/o.pyc      0     3      1   12
5  7   1     7   /a/m.py                0     3      1   13
6  7   1     7   /a/__pycache__/d.pyc   0     3      1   14
== files
dev ino path                   directory
1   10  /a/__pycache__/m.pyc   false
1   14  /a/__pycache__/d.pyc   true
",
        )
        .unwrap();
        let used = used_artifacts(&tables.files, &tables.opens, |open| open.result >= 0);
        assert_eq!(used.into_iter().collect::<Vec<_>>(), ["/a/__pycache__/m.pyc"]);
    }

    #[test]
    fn it_is_decided_for_the_user_of_most_children_that_are_not_roots() {
        let of = |uids: &[u32]| {
            let rows = uids.iter().enumerate().map(|(pid, uid)| format!("{pid} {pid} 1 {uid}\n"));
            let text = format!("== execs\nts pid start uid\n{}", rows.collect::<String>());
            user_of_children(&Tables::from_text(&text).unwrap().execs)
        };
        assert_eq!(of(&[0, 33, 0, 65534, 33]), Some(33));
        assert_eq!((of(&[0, 40, 33]), of(&[0, 0]), of(&[])), (Some(33), None, None));
    }

    #[test]
    fn rules_are_counted_over_all_artifacts_and_not_only_over_those_that_are_listed() {
        let denied = |path: &str, by: &str| Artifact {
            path: path.to_owned(),
            family: "python_bytecode".to_owned(),
            state: State::Unreadable,
            uid: 5,
            denied_by: Some(DeniedBy {
                path: by.to_owned(),
                access: Access::Search,
                rule: Rule::OtherBits,
                words: "other bits lack x".to_owned(),
            }),
            change: None,
            reason: None,
            cost: None,
        };
        let few = (0..20).map(|number| denied(&format!("/a/{number}"), "/a"));
        let many = (0..280).map(|number| denied(&format!("/b/{number}"), "/b"));
        let found = summary(5, &few.chain(many).collect::<Vec<_>>());
        assert_eq!((found.used, found.unreadable, found.unknown, found.artifacts.len()), (300, 300, 0, MOST));
        let rules: Vec<(&str, u64)> = found.rules.iter().map(|rule| (rule.path.as_str(), rule.artifacts)).collect();
        assert_eq!(rules, [("/b", 280), ("/a", 20)]);
    }
}
