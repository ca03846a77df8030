//! What `slowpath artifacts audit --json` prints.

use super::{Artifact, Audit};
use crate::access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unavailable;

/// Name and version of an audit.
pub const AUDIT_SCHEMA: &str = "slowpath-artifacts-audit/1";

/// What `slowpath artifacts audit --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audited {
    /// `slowpath-artifacts-audit/1`.
    #[schemars(extend("const" = AUDIT_SCHEMA))]
    pub schema: String,
    /// Who it was decided for.
    pub user: AuditedUser,
    /// All artifacts, the ones to act on first: unreadable, stale, missing, unknown, usable.
    pub artifacts: Vec<Artifact>,
    /// Names in directories that were looked at.
    pub entries: u64,
    /// What could not be looked at.
    pub unavailable: Vec<Unavailable>,
}

/// Who an audit was decided for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditedUser {
    /// Name; the number where there is none.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

impl Audited {
    /// An audit for an identity of this name.
    pub fn new(name: String, identity: access::Identity, found: Audit) -> Self {
        let Audit { artifacts, unavailable, entries } = found;
        let user = AuditedUser { name, uid: identity.uid, gid: identity.gid, groups: identity.groups };
        Self { schema: AUDIT_SCHEMA.to_owned(), user, artifacts, entries, unavailable }
    }
}
