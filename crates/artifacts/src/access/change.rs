//! The smallest change of permissions that would allow an access.
//!
//! A denial by bits is lifted by the one bit that is missing, on each file that denies; a denial by an access control list by an entry
//! for the user. What a mount refuses, no permission changes. Pure: the change is tried on the facts and the evaluator is asked again.

use super::acl::Acl;
use super::decision::{Access, Decision, Denial, Rule};
use super::evaluate::decide;
use super::facts::{AclFact, Component, FileKind, Lookup, LookupEnd, MountFacts, Step};
use super::identity::{FileCapabilities, Identity};
use super::shell::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Whose permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The owner's.
    Owner,
    /// The group's.
    Group,
    /// Those of everybody else.
    Other,
}

impl Class {
    fn letter(self) -> char {
        match self {
            Self::Owner => 'u',
            Self::Group => 'g',
            Self::Other => 'o',
        }
    }

    fn shift(self) -> u32 {
        match self {
            Self::Owner => 6,
            Self::Group => 3,
            Self::Other => 0,
        }
    }
}

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// One permission bit more.
    Mode {
        /// The file.
        path: PathBuf,
        /// Whose bit.
        class: Class,
        /// Which permission.
        access: Access,
    },
    /// An entry of the access control list for the user.
    AclUser {
        /// The file.
        path: PathBuf,
        /// The user.
        uid: u32,
        /// What the entry then grants, 4 read, 2 write, 1 execute or search: what the user could do before, and what was asked for. The
        /// user's own entry hides those of groups and of others.
        grants: u8,
        /// The mask then: what it was, and what the entry grants. Left to itself setfacl(1) makes it as wide as all entries, and so
        /// opens what a narrow mask had closed.
        mask: u8,
    },
}

impl Change {
    /// The command that makes it, for a shell.
    pub fn command(&self) -> String {
        match self {
            Self::Mode { path, class, access } => {
                format!("chmod {}+{} {}", class.letter(), access.letter(), quoted(path))
            }
            Self::AclUser { path, uid, grants, mask } => {
                format!("setfacl -m u:{uid}:{},m::{} {}", letters(*grants), letters(*mask), quoted(path))
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Mode { path, .. } | Self::AclUser { path, .. } => path,
        }
    }
}

/// Permissions as setfacl(1) takes them.
fn letters(grants: u8) -> String {
    let letters = [(4, 'r'), (2, 'w'), (1, 'x')].into_iter();
    letters.map(|(bit, letter)| if grants & bit != 0 { letter } else { '-' }).collect()
}

/// The changes that together allow what is denied, in the order in which the kernel meets the files; `None` where no permission can, or
/// where something is not known.
pub fn smallest_change(identity: &Identity, lookup: &Lookup, access: Access) -> Option<Vec<Change>> {
    let mut lookup = lookup.clone();
    // A confined process may be refused nevertheless; that is no reason to say nothing of the permissions.
    let identity = Identity { confinement: None, ..identity.clone() };
    let mut changes: Vec<Change> = Vec::new();
    // Each file is met once a step, and no change takes a permission away.
    for _ in 0..=lookup.steps.len() + 1 {
        match decide(&identity, &lookup, access) {
            Decision::Allowed => return (!changes.is_empty()).then_some(changes),
            Decision::Unknown { .. } => return None,
            Decision::Denied(denial) => {
                let change = lifting(&identity, &lookup, &denial)?;
                for component in components(&mut lookup).filter(|component| component.path == change.path()) {
                    apply(&change, component);
                }
                changes.push(change);
            }
        }
    }
    None
}

/// A file before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// As it is.
    pub before: Component,
    /// As the change makes it.
    pub after: Component,
}

/// What changes make of the files of a lookup: each that they change, once, with all of them.
pub fn changed(lookup: &Lookup, changes: &[Change]) -> Vec<Changed> {
    let mut lookup = lookup.clone();
    let mut files: Vec<Changed> = Vec::new();
    for before in components(&mut lookup) {
        let of_this = changes.iter().filter(|change| change.path() == before.path);
        let mut after = before.clone();
        of_this.for_each(|change| apply(change, &mut after));
        let is_new = !files.iter().any(|file| file.before.path == before.path);
        if is_new && after != *before {
            files.push(Changed { before: before.clone(), after });
        }
    }
    files
}

/// Every file of a lookup; one that is met twice stands there twice.
fn components(lookup: &mut Lookup) -> impl Iterator<Item = &mut Component> {
    let steps = lookup.steps.iter_mut().flat_map(|step| match step {
        Step::Search(directory) => vec![directory],
        Step::Follow { link, directory, .. } => vec![link, directory],
    });
    let end = match &mut lookup.end {
        LookupEnd::File(file) => Some(file),
        LookupEnd::Blocked(_) => None,
    };
    steps.chain(end)
}

/// The change that lifts this denial.
fn lifting(identity: &Identity, lookup: &Lookup, denial: &Denial) -> Option<Change> {
    let mut lookup = lookup.clone();
    let file = &*components(&mut lookup).find(|component| component.path == denial.path)?;
    let of_class = |class| Change::Mode { path: denial.path.clone(), class, access: denial.access };
    let of_user = |acl: &Acl| {
        let grants = permissions_alone(identity, file) | denial.access.bit();
        Change::AclUser { path: denial.path.clone(), uid: identity.uid, grants, mask: acl.group_class() | grants }
    };
    match (denial.rule, &file.acl) {
        (Rule::OwnerBits, _) => Some(of_class(Class::Owner)),
        (Rule::GroupBits, AclFact::None) => Some(of_class(Class::Group)),
        (Rule::OtherBits, AclFact::None) => Some(of_class(Class::Other)),
        // The list counts again once its mask is not empty: then the user needs an entry, and the bits would grant it to others.
        (Rule::GroupBits | Rule::OtherBits, AclFact::Entries(acl)) => Some(of_user(acl)),
        (Rule::AclUser | Rule::AclGroup | Rule::AclMask | Rule::AclOther, AclFact::Entries(acl)) => Some(of_user(acl)),
        _ => None,
    }
}

/// What the permissions of a file give the user, whatever its mount refuses and capabilities allow.
fn permissions_alone(identity: &Identity, file: &Component) -> u8 {
    let identity = Identity { capabilities: FileCapabilities::default(), ..identity.clone() };
    let file = Component { mount: MountFacts::default(), immutable: false, ..file.clone() };
    let last = if file.kind == FileKind::Directory { Access::Search } else { Access::Execute };
    let lookup = Lookup { steps: Vec::new(), end: LookupEnd::File(file), protected_symlinks: None };
    let allowed = [Access::Read, Access::Write, last]
        .into_iter()
        .filter(|access| decide(&identity, &lookup, *access) == Decision::Allowed);
    allowed.fold(0, |all, access| all | access.bit())
}

/// What chmod(1) and setfacl(1) do to the facts.
fn apply(change: &Change, file: &mut Component) {
    match change {
        Change::Mode { class, access, .. } => file.mode |= u32::from(access.bit()) << class.shift(),
        Change::AclUser { uid, grants, mask, .. } => {
            let acl = match &file.acl {
                AclFact::Entries(acl) => acl.clone(),
                _ => Acl::of_mode(file.mode),
            };
            let acl = acl.granting_user(*uid, *grants, *mask);
            file.mode = file.mode & !0o777 | acl.mode_bits();
            file.acl = AclFact::Entries(acl);
        }
    }
}
