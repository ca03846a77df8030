//! Who may ask a zygote, for whom, and how much: a small TOML file, and the rules as pure functions.
//!
//! Without a policy: its own user and root ask; a client that is not root gets children of its own user only, never of root; at most 512
//! children live at once, and there are no spares.

use crate::message::{AskedIdentity, Refusal, RefusalKind, SpawnRequest};
use crate::namespaces::Namespace;
use serde::{Deserialize, Deserializer, de};
use slowpath_process::{Credentials, NO_ID, Peer, trusted_file};
use std::fmt::Write;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// Bytes of a policy at most.
pub const MOST_BYTES: u64 = 64 << 10;

/// Children at most, whatever a policy says: each takes two descriptors of the zygote, and the usual limit is 1024.
pub const MOST_CHILDREN: u32 = 4096;

/// Spares at most.
pub const MOST_SPARES: u32 = 64;

/// A range of ids, both ends included; one id is one too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids(pub RangeInclusive<u32>);

impl<'de> Deserialize<'de> for Ids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(u32),
            Range(String),
        }
        let range = match Written::deserialize(deserializer)? {
            Written::One(one) => one..=one,
            Written::Range(text) => {
                let ends = text.split_once('-').and_then(|(low, high)| Some(low.parse().ok()?..=high.parse().ok()?));
                ends.ok_or_else(|| de::Error::custom(format!("{text:?} is no range such as \"99000-99999\"")))?
            }
        };
        if range.is_empty() || *range.start() == 0 || *range.end() == NO_ID {
            return Err(de::Error::custom("a range ascends, without 0 (root) and 4294967295 (not an id)"));
        }
        Ok(Self(range))
    }
}

/// A time: `"300ms"`, `"5s"`, `"10min"`, `"1h"`.
///
/// # Errors
/// The text is none, or longer than 30 days.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time such as \"300ms\", \"5s\", \"10min\" or \"1h\"");
    let at = text.find(|one: char| !one.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let scale = match unit {
        "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let most = Duration::from_secs(30 * 86_400);
    number.checked_mul(scale).map(Duration::from_millis).filter(|time| *time <= most).ok_or_else(wrong)
}

fn optional_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    duration(&text).map(Some).map_err(de::Error::custom)
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// User ids that may ask, beside the zygote's own user and root. Whoever asks has the code of the children do something: where the
    /// zygote is not root's, as the zygote's own user.
    pub allow: Vec<u32>,
    /// Ids that children of clients other than root may have, as user and as group, beside the client's own.
    pub ids: Vec<Ids>,
    /// Children alive at most.
    pub children: u32,
    /// Spares at least.
    pub spares: u32,
    /// Spares at most; the demand says how many between the two.
    pub most_spares: u32,
    /// End after so long without a connection; none: never.
    #[serde(deserialize_with = "optional_duration")]
    pub idle: Option<Duration>,
    /// Start the preloaded program anew after so long, when no child is alive, for another layout of addresses; none: never.
    #[serde(deserialize_with = "optional_duration")]
    pub renew: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { allow: Vec::new(), ids: Vec::new(), children: 512, spares: 0, most_spares: 0, idle: None, renew: None }
    }
}

/// Why a text is no policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It is no TOML, or has a key that is not known, or a value of another kind.
    #[error("{0}")]
    Text(String),
    /// A number beyond its limit.
    #[error("{key} is {value}, and the maximum is {most}")]
    TooMany {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u32,
        /// The limit.
        most: u32,
    },
}

/// Whom a zygote runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

impl Policy {
    /// Reads one. Any bytes are a policy or an error; nothing here touches the machine.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut policy: Self = toml::from_str(text).map_err(|error| PolicyError::Text(error.to_string()))?;
        policy.most_spares = policy.most_spares.max(policy.spares);
        policy.check()?;
        Ok(policy)
    }

    /// The policy in a file, of which `read` reads so many bytes; root takes only one that nobody else can have written.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn of_file(path: &Path, read: impl FnOnce(&Path, u64) -> io::Result<Vec<u8>>) -> Result<Self, String> {
        let bytes = match nix::unistd::geteuid().is_root() {
            true => trusted_file(path).and_then(|trusted| trusted.read(MOST_BYTES)),
            false => read(path, MOST_BYTES),
        };
        let bytes = bytes.map_err(|error| error.to_string())?;
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        Self::parse(&text).map_err(|error| error.to_string())
    }

    /// The same with what somebody asks for instead.
    #[must_use]
    pub fn overridden(mut self, idle: Option<Duration>, spares: Option<u32>) -> Self {
        self.idle = idle.or(self.idle);
        if let Some(spares) = spares {
            self.spares = spares;
            self.most_spares = self.most_spares.max(spares);
        }
        self
    }

    /// Whether its numbers are within the limits.
    ///
    /// # Errors
    /// [`PolicyError::TooMany`].
    pub fn check(&self) -> Result<(), PolicyError> {
        for (key, value, most) in [
            ("children", self.children, MOST_CHILDREN),
            ("spares", self.spares, MOST_SPARES),
            ("most_spares", self.most_spares, MOST_SPARES),
        ] {
            if value > most {
                return Err(PolicyError::TooMany { key, value, most });
            }
        }
        Ok(())
    }

    /// The text that [`Policy::parse`] reads as this.
    pub fn text(&self) -> String {
        let ids: Vec<String> = self.ids.iter().map(|ids| format!("\"{}-{}\"", ids.0.start(), ids.0.end())).collect();
        let mut text = format!(
            "allow = {:?}\nids = [{}]\nchildren = {}\nspares = {}\nmost_spares = {}\n",
            self.allow,
            ids.join(", "),
            self.children,
            self.spares,
            self.most_spares
        );
        for (key, time) in [("idle", self.idle), ("renew", self.renew)] {
            if let Some(time) = time {
                let _ = writeln!(text, "{key} = \"{}ms\"", time.as_millis());
            }
        }
        text
    }

    /// Whether this client may ask for anything.
    ///
    /// # Errors
    /// The refusal.
    pub fn may_ask(&self, peer: &Peer, own: &Own) -> Result<(), Refusal> {
        if peer.uid == 0 || peer.uid == own.uid || self.allow.contains(&peer.uid) {
            return Ok(());
        }
        let why = format!("user {} may not ask this zygote: its policy does not name it under `allow`", peer.uid);
        Err(Refusal::new(RefusalKind::NotAllowed, why))
    }

    /// Who a child is to be. Never more than the client asked for, or than it is itself.
    ///
    /// # Errors
    /// The refusal, with the rule that refuses.
    pub fn credentials(&self, peer: &Peer, own: &Own, asked: Option<&AskedIdentity>) -> Result<Credentials, Refusal> {
        let refused = |why: String| Refusal::new(RefusalKind::NotAllowed, why);
        if own.uid != 0 {
            let mine = Credentials { uid: own.uid, gid: own.gid, groups: own.groups.clone() };
            return match asked {
                None => Ok(mine),
                Some(asked) if asked.uid == own.uid && asked.gid == own.gid && asked.groups.is_empty() => Ok(mine),
                Some(_) => Err(Refusal::new(
                    RefusalKind::Cannot,
                    format!(
                        "this zygote runs as user {}, and only root's zygotes can give children another identity",
                        own.uid
                    ),
                )),
            };
        }
        let Some(asked) = asked else {
            let groups = if peer.uid == 0 { own.groups.clone() } else { peer.groups.clone() };
            return Ok(Credentials { uid: peer.uid, gid: peer.gid, groups });
        };
        let wanted = Credentials { uid: asked.uid, gid: asked.gid, groups: asked.groups.clone() };
        if peer.uid == 0 {
            return Ok(wanted);
        }
        let is_in = |id: u32| self.ids.iter().any(|ids| ids.0.contains(&id));
        if wanted.uid != peer.uid && !is_in(wanted.uid) {
            let why = format!(
                "user {} may have children of its own and of the `ids` of the policy, and {} is none of them",
                peer.uid, wanted.uid
            );
            return Err(refused(why));
        }
        let is_group = |id: u32| id == peer.gid || peer.groups.contains(&id) || is_in(id);
        match std::iter::once(wanted.gid).chain(wanted.groups.iter().copied()).find(|id| !is_group(*id)) {
            Some(group) => {
                Err(refused(format!("user {} is not in group {group}, nor is it in the `ids` of the policy", peer.uid)))
            }
            None => Ok(wanted),
        }
    }

    /// Whether these namespaces can be made by a zygote of this user.
    ///
    /// # Errors
    /// The refusal.
    pub fn namespaces(&self, own: &Own, spawn: &SpawnRequest) -> Result<(), Refusal> {
        let cannot = |why: &str| Err(Refusal::new(RefusalKind::Cannot, why));
        let (user, pid) = (spawn.namespaces.contains(&Namespace::User), spawn.namespaces.contains(&Namespace::Pid));
        match own.uid {
            0 if user => {
                cannot("root's zygotes give children a user id of their own and no user namespace: ask for the id")
            }
            0 => Ok(()),
            _ if pid => cannot("a pid namespace takes a zygote of root's"),
            _ if !user && !spawn.namespaces.is_empty() => {
                cannot("without root, other namespaces need a user namespace: ask for user, too")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own(uid: u32) -> Own {
        Own { uid, gid: uid, groups: vec![uid] }
    }

    fn peer(uid: u32) -> Peer {
        Peer { pid: 1, uid, gid: uid, groups: vec![uid, 50] }
    }

    fn asked(uid: u32, gid: u32, groups: &[u32]) -> Option<AskedIdentity> {
        Some(AskedIdentity { uid, gid, groups: groups.to_vec() })
    }

    #[test]
    fn a_policy_says_what_it_says_and_nothing_else() {
        let text = "allow = [1000]\nids = [65534, \"99000-99999\"]\nchildren = 3\nspares = 2\nidle = \"5s\"\n";
        let policy = Policy::parse(text).unwrap();
        assert_eq!((policy.children, policy.spares, policy.most_spares), (3, 2, 2));
        assert_eq!(policy.idle, Some(Duration::from_secs(5)));
        assert!(policy.ids[1].0.contains(&99500));
        assert_eq!(Policy::parse("").unwrap(), Policy::default());
        for (wrong, words) in [
            ("colour = 1", "unknown field"),
            ("children = 5000", "the maximum is 4096"),
            ("ids = [0]", "without 0"),
            ("ids = [\"0-5\"]", "without 0"),
            ("ids = [\"9-5\"]", "ascends"),
            ("ids = [\"x\"]", "no range"),
            ("ids = [4294967295]", "4294967295"),
            ("idle = \"5\"", "no time"),
            ("idle = \"9999999h\"", "no time"),
        ] {
            let error = Policy::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }

    #[test]
    fn others_than_its_own_user_and_root_ask_only_by_name() {
        let policy = Policy { allow: vec![7], ..Policy::default() };
        for (who, may) in [(0, true), (5, true), (7, true), (8, false)] {
            assert_eq!(policy.may_ask(&peer(who), &own(5)).is_ok(), may, "{who}");
        }
    }

    #[test]
    fn a_client_gets_its_own_user_or_those_of_the_policy_and_never_root() {
        let policy = Policy { ids: vec![Ids(99000..=99999)], ..Policy::default() };
        let get = |who, asked: Option<AskedIdentity>| policy.credentials(&peer(who), &own(0), asked.as_ref());
        assert_eq!(get(7, None).unwrap(), Credentials { uid: 7, gid: 7, groups: vec![7, 50] });
        assert_eq!(get(7, asked(7, 50, &[])).unwrap().gid, 50);
        assert_eq!(get(7, asked(99001, 99001, &[])).unwrap(), Credentials { uid: 99001, gid: 99001, groups: vec![] });
        for (uid, gid, groups) in [(0, 7, &[][..]), (8, 7, &[]), (7, 0, &[]), (7, 7, &[0]), (99001, 8, &[])] {
            assert_eq!(get(7, asked(uid, gid, groups)).unwrap_err().kind, RefusalKind::NotAllowed, "{uid} {gid}");
        }
        assert_eq!(get(0, asked(8, 9, &[10])).unwrap(), Credentials { uid: 8, gid: 9, groups: vec![10] });
        assert_eq!(get(0, None).unwrap().uid, 0);
    }

    #[test]
    fn a_zygote_that_is_not_roots_gives_its_own_user_and_says_so() {
        let get = |asked: Option<AskedIdentity>| Policy::default().credentials(&peer(5), &own(5), asked.as_ref());
        assert_eq!(get(None).unwrap().uid, 5);
        assert_eq!(get(asked(5, 5, &[])).unwrap(), get(None).unwrap());
        for other in [asked(6, 5, &[]), asked(5, 6, &[]), asked(5, 5, &[1])] {
            let refusal = get(other).unwrap_err();
            assert!(refusal.kind == RefusalKind::Cannot && refusal.why.contains("only root's zygotes"));
        }
    }

    #[test]
    fn namespaces_that_cannot_be_made_are_refused_with_what_would_do() {
        let asks = |uid, list: &[Namespace]| {
            let spawn = SpawnRequest { namespaces: list.to_vec(), ..SpawnRequest::default() };
            Policy::default().namespaces(&own(uid), &spawn).is_ok()
        };
        use Namespace::{Network, Pid, User};
        assert!(asks(0, &[Network, Pid]) && asks(5, &[User, Network]) && asks(5, &[]));
        assert!(!asks(0, &[User]) && !asks(5, &[User, Pid]) && !asks(5, &[Network]));
    }

    proptest! {
        #[test]
        fn nobody_but_root_gets_ids_that_are_neither_its_own_nor_in_the_policy(
            who in 1u32..9, uid in 0u32..12, gid in 0u32..12, groups in proptest::collection::vec(0u32..12, 0..3), own_uid in 0u32..3,
        ) {
            let policy = Policy { ids: vec![Ids(10..=10)], ..Policy::default() };
            let asked = AskedIdentity { uid, gid, groups };
            if let Ok(got) = policy.credentials(&peer(who), &own(own_uid), Some(&asked)) {
                if own_uid == 0 {
                    prop_assert!(got.uid == who || got.uid == 10);
                    for id in std::iter::once(got.gid).chain(got.groups) {
                        prop_assert!(id == who || id == 50 || id == 10);
                    }
                } else {
                    prop_assert_eq!(got.uid, own_uid);
                }
            }
        }

        #[test]
        fn any_text_is_a_policy_or_an_error_and_a_policy_written_is_read_as_it_was(
            text in "[a-z= \"0-9\\[\\]\n,-]{0,80}", children in 0u32..4096, spares in 0u32..64, idle in proptest::option::of(0u64..9_999_999),
        ) {
            let _ = Policy::parse(&text);
            let idle = idle.map(Duration::from_millis);
            let policy = Policy { allow: vec![1, 2], ids: vec![Ids(5..=9)], children, spares, most_spares: 64, idle, renew: idle };
            prop_assert_eq!(Policy::parse(&policy.text()).unwrap(), policy);
        }
    }
}
