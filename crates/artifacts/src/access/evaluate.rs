//! Whether an identity may read, write, execute or search a path, as the kernel decides it.
//!
//! Follows `inode_permission`, `generic_permission`, `acl_permission_check`, `may_follow_link` (fs/namei.c), `posix_acl_permission`
//! (fs/posix_acl.c) and `do_faccessat` (fs/open.c) of Linux 6.18, in their order, so that the rule it names is the first one that denies.
//! Pure: everything it looks at is in the facts. `tests/kernel.rs` holds it against faccessat2(2).
//!
//! Security modules are asked last and can only refuse, so a denial found here stands; what is allowed so far is unknown where one
//! confines the process ([`Identity::confinement`]).

use super::acl::{Acl, AclTag};
use super::decision::{Access, Decision, Denial, Rule};
use super::facts::{AclFact, Component, FileKind, Lookup, LookupEnd, Step};
use super::identity::Identity;
use std::ops::ControlFlow;

/// What a component says: go on, or this is the answer.
type Verdict = ControlFlow<Decision>;

/// Decides about a path: every directory and link on the way, then the file itself.
pub fn decide(identity: &Identity, lookup: &Lookup, access: Access) -> Decision {
    match (walk(identity, lookup, access), &identity.confinement) {
        (Verdict::Break(decision), _) => decision,
        (Verdict::Continue(()), Some(why)) => Decision::Unknown { why: why.clone() },
        (Verdict::Continue(()), None) => Decision::Allowed,
    }
}

fn walk(identity: &Identity, lookup: &Lookup, access: Access) -> Verdict {
    for step in &lookup.steps {
        match step {
            Step::Search(directory) => permission(identity, directory, Access::Search)?,
            Step::Follow { link, directory, is_last } => {
                let protected = if *is_last { lookup.protected_symlinks } else { Some(false) };
                follow(identity, link, directory, protected)?;
            }
        }
    }
    match &lookup.end {
        LookupEnd::File(file) => permission(identity, file, access),
        LookupEnd::Blocked(why) => unknown(why.clone()),
    }
}

fn unknown(why: impl Into<String>) -> Verdict {
    ControlFlow::Break(Decision::Unknown { why: why.into() })
}

fn denied(component: &Component, access: Access, rule: Rule) -> Verdict {
    ControlFlow::Break(Decision::Denied(Denial { path: component.path.clone(), access, rule }))
}

/// `may_follow_link`, and `nosymfollow` of the mount.
fn follow(identity: &Identity, link: &Component, directory: &Component, protected: Option<bool>) -> Verdict {
    if link.mount.no_symlink_follow {
        return denied(link, Access::Follow, Rule::NoSymlinkFollowMount);
    }
    /// `S_ISVTX | S_IWOTH`, include/uapi/linux/stat.h.
    const STICKY_AND_WRITABLE: u32 = 0o1002;
    let is_guarded = directory.mode & STICKY_AND_WRITABLE == STICKY_AND_WRITABLE
        && link.uid != identity.uid
        && link.uid != directory.uid;
    match (is_guarded, protected) {
        (false, _) | (true, Some(false)) => Verdict::Continue(()),
        (true, Some(true)) => denied(link, Access::Follow, Rule::ProtectedSymlink),
        (true, None) => unknown("fs.protected_symlinks is not known"),
    }
}

/// `inode_permission`, after what faccessat(2) and execve(2) check of the mount.
fn permission(identity: &Identity, file: &Component, access: Access) -> Verdict {
    if let Some(why) = &file.mount.undecidable {
        return unknown(format!("{}: {why}", file.path.display()));
    }
    if access == Access::Execute && file.kind == FileKind::Regular && file.mount.no_exec {
        return denied(file, access, Rule::NoExecMount);
    }
    // Of special files only the inode is on the file system: they can be written there (`sb_permission`).
    if access == Access::Write && file.kind != FileKind::Special && file.mount.read_only_file_system {
        return denied(file, access, Rule::ReadOnlyMount);
    }
    if access == Access::Write && file.immutable {
        return denied(file, access, Rule::Immutable);
    }
    match discretionary(identity, file, access) {
        Err(why) => unknown(why),
        Ok(Some(rule)) if !is_overridden(identity, file, access) => denied(file, access, rule),
        Ok(_) if access == Access::Write && file.kind != FileKind::Special && file.mount.read_only => {
            denied(file, access, Rule::ReadOnlyMount)
        }
        Ok(_) => Verdict::Continue(()),
    }
}

/// The capability part of `generic_permission`.
fn is_overridden(identity: &Identity, file: &Component, access: Access) -> bool {
    let overrides = identity.overrides(file.uid, file.gid);
    let reads = identity.reads_and_searches(file.uid, file.gid);
    if file.kind == FileKind::Directory {
        return overrides || reads && access != Access::Write;
    }
    let is_executable = access != Access::Execute || file.mode & 0o111 != 0;
    overrides && is_executable || reads && access == Access::Read
}

/// `acl_permission_check`: the rule that denies, or none.
fn discretionary(identity: &Identity, file: &Component, access: Access) -> Result<Option<Rule>, String> {
    let wanted = access.bit();
    let lacks = |shift: u32| (file.mode >> shift) as u8 & 7 & wanted != wanted;
    // The owner's list entry is the owner's bits.
    if identity.uid == file.uid {
        return Ok(lacks(6).then_some(Rule::OwnerBits));
    }
    // With a list the group's bits are its mask; the kernel does not look at the list where that is empty.
    if file.mode & 0o070 != 0 {
        match &file.acl {
            AclFact::None => {}
            AclFact::Entries(acl) => return Ok(listed(identity, file, acl, wanted)),
            AclFact::Unread(why) => {
                return Err(format!("{}: its access control list was not read: {why}", file.path.display()));
            }
        }
    }
    let is_member = identity.is_in_group(file.gid);
    Ok(match is_member {
        true => lacks(3).then_some(Rule::GroupBits),
        false => lacks(0).then_some(Rule::OtherBits),
    })
}

/// `posix_acl_permission`.
fn listed(identity: &Identity, file: &Component, acl: &Acl, wanted: u8) -> Option<Rule> {
    let within_mask = |grants: u8| acl.mask() & grants & wanted == wanted;
    let mut is_member = false;
    for entry in acl.entries() {
        let has = entry.grants & wanted == wanted;
        match entry.tag {
            // The owner was asked before.
            AclTag::Owner | AclTag::Mask => {}
            AclTag::User(uid) if uid == identity.uid => {
                return match (has, within_mask(entry.grants)) {
                    (_, true) => None,
                    (true, false) => Some(Rule::AclMask),
                    (false, false) => Some(Rule::AclUser),
                };
            }
            AclTag::User(_) => {}
            AclTag::OwningGroup | AclTag::Group(_) => {
                let gid = if let AclTag::Group(gid) = entry.tag { gid } else { file.gid };
                if !identity.is_in_group(gid) {
                    continue;
                }
                is_member = true;
                if has {
                    return (!within_mask(entry.grants)).then_some(Rule::AclMask);
                }
            }
            AclTag::Other if is_member => return Some(Rule::AclGroup),
            AclTag::Other => return (!has).then_some(Rule::AclOther),
        }
    }
    // A list has an entry for others (`Acl::of_entries`); the kernel says EIO of one that has not.
    Some(Rule::AclOther)
}
