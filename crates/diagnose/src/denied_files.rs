//! Which file denies a user what a finding says was denied, and the smallest change that would let it in: what the fix `grant_read` shows.
//!
//! Looked up on this machine, as it is now, with the rights of the caller: root sees what lies below directories that the user may not
//! enter. Nothing is changed.

use slowpath_analysis::Finding;
use slowpath_artifacts::access::{self, Access, Change, Decision, decide, smallest_change};
use slowpath_artifacts::gather::Machine;
use slowpath_fix::Proposal;
use slowpath_fix::grant_read::{Repair, name_changes};
use slowpath_launch::Identity;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::unprivileged::{Work, as_user};
use std::collections::BTreeMap;
use std::path::Path;

/// The proposals, with the changes of those that change permissions.
///
/// # Errors
/// The caller cannot be looked up, or the process that looks failed.
pub fn with_changes(mut proposals: Vec<Proposal>, findings: &[Finding]) -> Result<Vec<Proposal>, Failure> {
    if proposals.is_empty() {
        return Ok(proposals);
    }
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    // The user database is asked here: who looks at the files may not.
    let uids = findings.iter().filter_map(|finding| u32::try_from(finding.subject.get("uid")?.as_u64()?).ok());
    let users: BTreeMap<u32, access::Identity> = uids.filter_map(|uid| Some((uid, of_user(uid)?))).collect();
    as_user(&caller, &Work::reading("looking who denies"), || {
        // What cannot be looked up leaves the plan as it is, which says how to find out.
        if let Ok(machine) = Machine::read() {
            name_changes(&mut proposals, findings, |path, uid| repair(&machine, Path::new(path), users.get(&uid)?));
        }
        Ok(proposals)
    })
}

/// What a user is to the kernel after a login.
fn of_user(uid: u32) -> Option<access::Identity> {
    let (user, _) = Identity::known_as(&uid.to_string()).ok()?;
    Some(access::Identity::new(user.uid, user.gid, user.groups))
}

/// `None` where the user is not denied now, or it cannot be said who denies.
fn repair(machine: &Machine, path: &Path, identity: &access::Identity) -> Option<Repair> {
    let lookup = machine.look_up(path).ok()?.lookup;
    let Decision::Denied(denial) = decide(identity, &lookup, Access::Read) else { return None };
    let changes = smallest_change(identity, &lookup, Access::Read)?;
    Some(Repair {
        path: denial.path.to_string_lossy().into_owned(),
        rule: denial.rule.words(denial.access),
        commands: changes.iter().map(Change::command).collect::<Vec<_>>().join(" && "),
    })
}
