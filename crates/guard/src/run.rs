//! One start: read the policy, look, repair what may be repaired, look again, count.

use crate::check::{Checked, Users, check};
use crate::decide::{Attempt, Counted, RepairState, calls_for_repair, count};
use crate::error::GuardError;
use crate::line::{Line, Start};
use crate::policy::{self, Policy, PolicyArtifact};
use crate::repair::{self, End};
use crate::store::{Opened, Store};
use crate::tries::{Ended, Tries};
use slowpath_tables::rfc3339;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What a caller asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Run the commands of the policy, each at most once a version. Nothing is changed without.
    pub repair: bool,
    /// The product's own pseudonym of its user, which lines have as `user`.
    pub user: Option<String>,
}

/// What a start found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// One line for each file and user, in the order of the policy.
    pub lines: Vec<Line>,
}

impl Report {
    /// 0 where all is fine, 1 where something cannot be used or decided, 3 where a repair was asked for and may not be run.
    pub fn exit_code(&self) -> u8 {
        if self.lines.iter().any(|line| line.repair == Some(RepairState::Refused)) {
            3
        } else {
            u8::from(!self.lines.iter().all(|line| line.outcome.is_fine()))
        }
    }

    /// Why a repair that was asked for was not run, once for each artifact.
    pub fn refused(&self) -> BTreeSet<(&str, &str)> {
        let refused = self.lines.iter().filter(|one| one.repair == Some(RepairState::Refused));
        refused.map(|one| (one.artifact.as_str(), one.repair_reason.as_deref().unwrap_or_default())).collect()
    }

    /// The lines as text, each with its end.
    pub fn json_lines(&self) -> String {
        self.lines.iter().map(|line| line.json() + "\n").collect()
    }
}

/// Checks the artifacts of a policy for the users who need them and, where `options` ask for it, repairs them.
///
/// Without a repair it only looks, at each directory of a path and at a file's header. As root it looks in a short-lived process that can
/// only read, which is forked from the calling one: a product that calls it before it takes much memory waits less.
///
/// # Errors
/// [`GuardError`]. What cannot be found out or repaired of single artifacts is no error but stands in their lines.
pub fn guard(policy: &Path, options: &Options) -> Result<Report, GuardError> {
    let began = Instant::now();
    let policy = policy::read(policy, options.repair)?;
    let users = Users::of(&policy);
    let all: Vec<usize> = (0..policy.artifacts.len()).collect();
    let mut found = check(&policy, &users, &all)?;
    let check_ms = began.elapsed().as_secs_f64() * 1e3;
    let mut work = Work { policy: &policy, users: &users, store: None };
    let mut counted = Vec::with_capacity(found.len());
    for (index, artifact) in policy.artifacts.iter().enumerate() {
        let rest = found.partition_point(|one| one.artifact <= index);
        let of_this: Vec<Checked> = found.drain(..rest).collect();
        counted.extend(match &artifact.repair {
            Some(_) if options.repair && calls_for_repair(&of_this) => work.repaired(index, artifact, of_this)?,
            _ => count(of_this, &Attempt::None),
        });
    }
    let start = Start { time: now(), id: random(), user: options.user.clone(), check_ms };
    Ok(Report { lines: counted.into_iter().map(|one| Line::new(&policy, &start, one)).collect() })
}

/// The repairs of a start: one lock for all of them, taken with the first.
struct Work<'a> {
    policy: &'a Policy,
    users: &'a Users,
    store: Option<Result<Opened, String>>,
}

impl Work<'_> {
    fn repaired(
        &mut self,
        index: usize,
        artifact: &PolicyArtifact,
        found: Vec<Checked>,
    ) -> Result<Vec<Counted>, GuardError> {
        let (policy, users) = (self.policy, self.users);
        let opened = self.store.get_or_insert_with(|| match &policy.state {
            Some(state) => Store::open(state, &policy.name),
            None => Err("the policy names no directory `state`".to_owned()),
        });
        let (store, tries) = match opened {
            Err(why) => return Ok(count(found, &Attempt::Refused(why.clone()))),
            Ok(Opened::Busy) => return Ok(count(found, &Attempt::Running)),
            Ok(Opened::Ours(store, tries)) => (store, tries),
        };
        // Who had the lock until now, or the repair of another artifact, may have mended this one.
        let found = check(policy, users, &[index])?;
        if !calls_for_repair(&found) {
            return Ok(count(found, &Attempt::None));
        }
        if let Some(tried) = tries.of(&policy.version, &artifact.name) {
            return Ok(count(found, &Attempt::Before(tried.clone())));
        }
        let attempt = attempt(policy, users, index, store, tries)?;
        Ok(count(found, &attempt))
    }
}

/// Notes the try, runs the command, looks, and notes how it ended. What is killed in between leaves the try.
fn attempt(
    policy: &Policy,
    users: &Users,
    index: usize,
    store: &Store,
    tries: &mut Tries,
) -> Result<Attempt, GuardError> {
    let artifact = &policy.artifacts[index];
    let Some(repair) = &artifact.repair else { return Ok(Attempt::None) };
    let prepared = match repair::prepare(repair) {
        Ok(prepared) => prepared,
        Err(why) => return Ok(Attempt::Refused(why)),
    };
    let mut begun = tries.clone();
    begun.begin(&policy.version, &artifact.name, now());
    if let Err(why) = store.write(&begun) {
        return Ok(Attempt::Refused(why));
    }
    *tries = begun;
    let began = Instant::now();
    let end = prepared.run();
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let after = check(policy, users, &[index])?;
    let status = if let End::Exited(status) = end { status } else { None };
    let is_usable = after.iter().all(|one| one.found.is_fine());
    tries.end(Ended { time: now(), status, is_usable });
    // Where this cannot be written, the try stands as one without an end, and is not made again either.
    let _ = store.write(tries);
    Ok(Attempt::Now { end, ms, after })
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(i64::try_from(since.as_secs()).unwrap_or(0))
}

/// 16 random bytes in hexadecimal.
fn random() -> String {
    let mut bytes = [0u8; 16];
    // From 3.17 on the kernel refuses nobody; without it the lines of a start are joined by their time alone.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
