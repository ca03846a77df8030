//! What the caller of a launch has and may: where a launch begins, and what it cannot be given. Leaves reading it to [`super::caller`].

use crate::factors::control_groups::OwnGroups;
use crate::reading::{Reading, Value};
use crate::snapshot::Snapshot;
use slowpath_process::Credentials;

/// `CAP_SETGID`, `CAP_SETUID`, `CAP_SETPCAP`, `CAP_SYS_ADMIN`, `CAP_SYS_NICE`, `CAP_SYS_RESOURCE`
/// (include/uapi/linux/capability.h).
pub(crate) const SETGID: u32 = 6;
pub(crate) const SETUID: u32 = 7;
pub(crate) const SETPCAP: u32 = 8;
pub(crate) const SYS_ADMIN: u32 = 21;
pub(crate) const SYS_NICE: u32 = 23;
pub(crate) const SYS_RESOURCE: u32 = 24;

/// The caller, and the user for whom it launches.
#[derive(Clone, Debug)]
pub struct Here {
    /// The context of a launch where nothing is set: the caller's own, with the target's identity.
    pub own: Snapshot,
    pub(crate) capabilities: u64,
    /// Where cgroups can be made, by controller.
    pub(crate) hierarchies: OwnGroups,
    /// Who targets run as.
    pub(crate) user: Credentials,
    /// Whether the user said that contexts may give what he has not.
    pub(crate) trusts: bool,
}

impl Here {
    /// Whether a context may give a launch what takes this capability: never more than its user has, unless he said so. Root has what
    /// the caller has, and others nothing.
    pub(crate) fn may(&self, capability: u32) -> bool {
        self.has(capability) && (self.trusts || self.user.uid == 0)
    }

    /// Whether the caller has a capability: for what gives a launch nothing that its user could not do.
    pub(crate) fn has(&self, capability: u32) -> bool {
        self.capabilities & (1 << capability) != 0
    }

    /// Why not, for one that [`Self::may`] denies.
    pub(crate) fn lacks(&self, capability: u32, name: &str) -> String {
        if self.has(capability) {
            format!(
                "it takes {name}, and the context asks for more than user {} has: --trust-context gives it all the same",
                self.user.uid
            )
        } else {
            format!("it takes {name}: run slowpath as root")
        }
    }

    /// Whether a context is the user's own, or taken for it because he said so.
    pub(crate) fn is_own(&self, context: &Snapshot) -> bool {
        self.trusts || context.source.is_of(self.user.uid)
    }

    /// Its own value of a factor.
    pub(crate) fn value(&self, factor: &str) -> Option<&Value> {
        self.own.reading(factor).and_then(Reading::value)
    }
}
