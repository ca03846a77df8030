//! What the caller of a launch has and may: where a launch begins, and what it cannot be given.

use super::groups::Hierarchies;
use crate::reading::{Reading, Value};
use crate::snapshot::Snapshot;

/// `CAP_SETGID`, `CAP_SETUID`, `CAP_SETPCAP`, `CAP_SYS_ADMIN`, `CAP_SYS_NICE`, `CAP_SYS_RESOURCE`
/// (include/uapi/linux/capability.h).
pub(crate) const SETGID: u32 = 6;
pub(crate) const SETUID: u32 = 7;
pub(crate) const SETPCAP: u32 = 8;
pub(crate) const SYS_ADMIN: u32 = 21;
pub(crate) const SYS_NICE: u32 = 23;
pub(crate) const SYS_RESOURCE: u32 = 24;

/// The caller.
#[derive(Clone, Debug)]
pub struct Here {
    /// Its own context, which a launch has where nothing is set.
    pub own: Snapshot,
    pub(crate) capabilities: u64,
    pub(crate) hierarchies: Hierarchies,
}

impl Here {
    /// The calling process now.
    pub fn now() -> Self {
        // Its own status can always be read; without `/proc` nothing is known, and nothing can be applied.
        let own = Snapshot::of_process(std::process::id()).unwrap_or_else(|_| Snapshot::nothing());
        let mask = own.reading("capabilities").and_then(Reading::value).and_then(|value| value.part("effective"));
        let capabilities = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        Self { capabilities, hierarchies: Hierarchies::here(), own }
    }

    /// Whether it has a capability.
    pub(crate) fn may(&self, capability: u32) -> bool {
        self.capabilities & (1 << capability) != 0
    }

    /// Its own value of a factor.
    pub(crate) fn value(&self, factor: &str) -> Option<&Value> {
        self.own.reading(factor).and_then(Reading::value)
    }
}
