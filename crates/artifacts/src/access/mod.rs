//! Who may read, write, execute or search what, as the kernel decides it, without asking the kernel.
//!
//! Owns the evaluator ([`decide`]), the facts it needs, what it says, and the smallest change that would allow. Pure: no file is opened
//! here. Leaves reading the facts of a path to [`crate::gather`].

mod acl;
mod change;
mod decision;
mod evaluate;
mod facts;
mod identity;
mod shell;

pub use acl::{Acl, AclEntry, AclError, AclTag};
pub use change::{Change, Changed, Class, changed, smallest_change};
pub use decision::{Access, Decision, Denial, Rule};
pub use evaluate::decide;
pub use facts::{AclFact, Component, FileKind, Lookup, LookupEnd, MountFacts, Step};
pub use identity::{FileCapabilities, IdRange, Identity, UserNamespace};
pub use shell::quoted;

#[cfg(test)]
mod tests;
