//! Reads what the calling process has and may, for a target of its own user or of another.

use super::here::Here;
use crate::factors::control_groups::OwnGroups;
use crate::factors::{capabilities, credentials};
use crate::reading::{Reading, Value};
use crate::snapshot::{Readings, Snapshot};
use crate::trust::Source;
use nix::unistd::geteuid;
use slowpath_launch::Identity;

impl Here {
    /// The calling process now, whose targets run as `identity`. `trusts`: contexts may give them more than that user has, and other
    /// code; else no context decides who somebody is.
    pub fn for_target(identity: &Identity, trusts: bool) -> Self {
        // Its own status can always be read; without `/proc` nothing is known, and nothing can be applied.
        let own = Snapshot::of_process(std::process::id()).unwrap_or_else(|_| Snapshot::nothing());
        let mask = own.reading("capabilities").and_then(Reading::value).and_then(|value| value.part("effective"));
        let capabilities = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        let mut here = Self { capabilities, hierarchies: OwnGroups::here(), own, user: identity.credentials(), trusts };
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
}
