//! Looking: the state of each file for each user, decided by `slowpath_artifacts`. Root looks in a worker that can only read.

use crate::Outcome;
use crate::error::GuardError;
use crate::policy::{Policy, PolicyUser};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use slowpath_artifacts::access::Identity;
use slowpath_artifacts::audit::{DeniedBy, Judged, NamedFile, State};
use slowpath_artifacts::gather::{LookupError, Machine};
use slowpath_process::{Credentials, Duty, Identity as User, Sandbox, Worker};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A worker that takes longer has met a file system that does not answer.
const LIMIT: Duration = Duration::from_secs(10);

/// What was found of one file for one user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Index of the artifact in the policy.
    pub artifact: usize,
    /// Index of its path.
    pub path: usize,
    /// Index of its user; `None` where the policy names none.
    pub user: Option<usize>,
    /// The user's id, where there is such a user.
    pub uid: Option<u32>,
    /// What it is; never `repaired` or `repair_failed`.
    pub found: Outcome,
    /// Who denies.
    pub denied_by: Option<DeniedBy>,
    /// The smallest change that would allow.
    pub change: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// How long this took.
    pub ms: f64,
}

/// Who the users of a policy are to the kernel; why not, where one does not exist.
pub struct Users(BTreeMap<PolicyUser, Result<Identity, String>>);

impl Users {
    /// Asks the user database once for each.
    pub fn of(policy: &Policy) -> Self {
        let all = policy.artifacts.iter().flat_map(|artifact| &artifact.users);
        let mut known = BTreeMap::new();
        for user in all {
            known.entry(user.clone()).or_insert_with(|| match user {
                PolicyUser::Ids { uid, gid, groups } => Ok(Identity::new(*uid, *gid, groups.clone())),
                PolicyUser::Known(name) => User::known_as(name)
                    .map(|(user, _)| Identity::new(user.uid, user.gid, user.groups))
                    .map_err(|error| error.to_string()),
            });
        }
        Self(known)
    }

    fn get(&self, user: &PolicyUser) -> Option<&Result<Identity, String>> {
        self.0.get(user)
    }
}

/// Checks the artifacts of these indices.
///
/// # Errors
/// `/proc` cannot be read, or the worker has no result.
pub fn check(policy: &Policy, users: &Users, which: &[usize]) -> Result<Vec<Checked>, GuardError> {
    if !geteuid().is_root() {
        return look(policy, users, which).map_err(GuardError::Machine);
    }
    let root = Credentials::of_this_process().map_err(|error| GuardError::Machine(format!("getgroups: {error}")))?;
    let sandbox = Sandbox::new(root, Duty::Read).silent();
    let worker = Worker::start(&sandbox, &[], || {
        // An answer that cannot be written is none, which its reader says.
        serde_json::to_vec(&look(policy, users, which)).unwrap_or_default()
    })?;
    let answer = worker.wait(LIMIT, || true)?;
    let answer: Result<Vec<Checked>, String> =
        serde_json::from_slice(&answer).map_err(|error| GuardError::Machine(format!("the check says {error}")))?;
    answer.map_err(GuardError::Machine)
}

fn look(policy: &Policy, users: &Users, which: &[usize]) -> Result<Vec<Checked>, String> {
    let machine = Machine::read().map_err(|error| format!("/proc cannot be read: {error}"))?;
    let mut all = Vec::new();
    for index in which {
        let Some(artifact) = policy.artifacts.get(*index) else { continue };
        let condition = artifact.only_if_exists.as_deref().map(|path| (path, exists(&machine, path)));
        for (path, file) in artifact.paths.iter().enumerate() {
            let mut began = Instant::now();
            let file = NamedFile::look_up(&machine, file, &artifact.fits_by);
            let nobody = artifact.users.is_empty().then_some(None);
            let asked = (0..artifact.users.len()).map(Some).chain(nobody);
            for user in asked {
                let who = user.and_then(|user| users.get(&artifact.users[user]));
                let judged = match (&condition, who) {
                    (Some((path, Ok(false))), _) => not_needed(format!("{} is not there", path.display())),
                    (_, None) => not_needed("the policy names no user".to_owned()),
                    (Some((_, Err(why))), _) | (_, Some(Err(why))) => unknown(why.clone()),
                    (_, Some(Ok(identity))) => {
                        file.judge(&Identity { confinement: machine.confinement(), ..identity.clone() })
                    }
                };
                let uid = who.and_then(|who| who.as_ref().ok()).map(|identity| identity.uid);
                let Judged { state, denied_by, change, reason } = judged;
                // The first user of a file pays for looking it up.
                let ms = began.elapsed().as_secs_f64() * 1e3;
                began = Instant::now();
                let found = outcome(state);
                all.push(Checked { artifact: *index, path, user, uid, found, denied_by, change, reason, ms });
            }
        }
    }
    Ok(all)
}

fn outcome(state: Option<State>) -> Outcome {
    match state {
        None => Outcome::NotNeeded,
        Some(State::Usable) => Outcome::Usable,
        Some(State::Missing) => Outcome::Missing,
        Some(State::Unreadable) => Outcome::Unreadable,
        Some(State::Stale) => Outcome::Stale,
        Some(State::Unknown) => Outcome::Unknown,
    }
}

fn not_needed(reason: String) -> Judged {
    Judged { reason: Some(reason), ..Judged::default() }
}

fn unknown(reason: String) -> Judged {
    Judged { state: Some(State::Unknown), reason: Some(reason), ..Judged::default() }
}

/// Whether something is at a path; why not, where the calling process may not look.
fn exists(machine: &Machine, path: &Path) -> Result<bool, String> {
    match machine.look_up(path) {
        Ok(found) if found.file.is_some() => Ok(true),
        Ok(_) => Err(format!("whether {} exists cannot be seen from here", path.display())),
        Err(LookupError::Missing { .. }) => Ok(false),
        Err(error) => Err(format!("whether {} exists cannot be seen: {error}", path.display())),
    }
}
