//! What the caller of a launch has and may: where a launch begins, and what it cannot be given.

use super::groups::Hierarchies;
use crate::factors::{capabilities, credentials};
use crate::reading::{Reading, Value};
use crate::snapshot::{Readings, Snapshot};
use crate::trust::Source;
use nix::unistd::geteuid;
use slowpath_launch::Identity;
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
    pub(crate) hierarchies: Hierarchies,
    /// Who targets run as.
    pub(crate) user: Credentials,
    /// Whether the user said that contexts may give what he has not.
    pub(crate) trusts: bool,
}

impl Here {
    /// The calling process now, whose targets run as `identity`. `trusts`: contexts may give them more than that user has, and other
    /// code; else no context decides who somebody is.
    pub fn for_target(identity: &Identity, trusts: bool) -> Self {
        // Its own status can always be read; without `/proc` nothing is known, and nothing can be applied.
        let own = Snapshot::of_process(std::process::id()).unwrap_or_else(|_| Snapshot::nothing());
        let mask = own.reading("capabilities").and_then(Reading::value).and_then(|value| value.part("effective"));
        let capabilities = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        let mut here =
            Self { capabilities, hierarchies: Hierarchies::here(), own, user: identity.credentials(), trusts };
        here.own.source = Source::Launched;
        if identity.uid != geteuid().as_raw() {
            here.give_identity();
        }
        here
    }

    /// The calling process, whose targets run as itself, and which takes nothing from strangers.
    ///
    /// # Errors
    /// The user database cannot be read.
    pub fn now() -> Result<Self, slowpath_launch::IdentityError> {
        Ok(Self::for_target(&Identity::of_caller()?, false))
    }

    /// What a target of another user has for the caller's user and capabilities.
    fn give_identity(&mut self) {
        let Some(thread) = self.own.threads.first_mut() else { return };
        let mut set = |factor: &str, change: &dyn Fn(&str, &str) -> String| {
            let readings: &mut Readings = &mut thread.factors;
            if let Some(Reading::Known { value: Value::Table(parts) }) = readings.get_mut(factor) {
                parts.iter_mut().for_each(|(name, value)| *value = change(name, value));
            }
        };
        let user = &self.user;
        set(credentials::CREDENTIALS.name, &|name, _| match name {
            "user" => user.uid.to_string(),
            "group" => user.gid.to_string(),
            _ => user.groups.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        });
        set(capabilities::CAPABILITIES.name, &|name, value| match name {
            "bounding" => value.to_owned(),
            _ => format!("{:016x}", 0),
        });
    }

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
