//! The smallest change of permissions that would allow an access.
//!
//! A denial by bits is lifted by the one bit that is missing, on each file that denies; a denial by an access control list by an entry
//! for the user. What a mount refuses, no permission changes. Pure: the change is tried on the facts and the evaluator is asked again.

use super::acl::Acl;
use super::decision::{Access, Decision, Denial, Rule};
use super::evaluate::decide;
use super::facts::{AclFact, Component, Lookup, LookupEnd, Step};
use super::identity::Identity;
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
        /// What the entry then grants, 4 read, 2 write, 1 execute or search: what it did, and what was asked for.
        grants: u8,
    },
}

impl Change {
    /// The command that makes it, for a shell.
    pub fn command(&self) -> String {
        match self {
            Self::Mode { path, class, access } => {
                format!("chmod {}+{} {}", class.letter(), access.letter(), quoted(path))
            }
            Self::AclUser { path, uid, grants } => {
                let letters = [(4, 'r'), (2, 'w'), (1, 'x')].into_iter();
                let letters: String = letters.filter(|(bit, _)| grants & bit != 0).map(|(_, letter)| letter).collect();
                format!("setfacl -m u:{uid}:{letters} {}", quoted(path))
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Mode { path, .. } | Self::AclUser { path, .. } => path,
        }
    }
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
    let file = components(&mut lookup).find(|component| component.path == denial.path)?;
    let of_class = |class| Change::Mode { path: denial.path.clone(), class, access: denial.access };
    let of_user = |acl: &Acl| Change::AclUser {
        path: denial.path.clone(),
        uid: identity.uid,
        grants: acl.of_user(identity.uid).unwrap_or(0) | denial.access.bit(),
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

/// What chmod(1) and setfacl(1) do to the facts.
fn apply(change: &Change, file: &mut Component) {
    match change {
        Change::Mode { class, access, .. } => file.mode |= u32::from(access.bit()) << class.shift(),
        Change::AclUser { uid, grants, .. } => {
            let acl = match &file.acl {
                AclFact::Entries(acl) => acl.clone(),
                _ => Acl::of_mode(file.mode),
            };
            let acl = acl.granting_user(*uid, *grants);
            file.mode = file.mode & !0o777 | acl.mode_bits();
            file.acl = AclFact::Entries(acl);
        }
    }
}
