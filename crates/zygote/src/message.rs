//! What clients and a zygote say to each other: MessagePack, one message in a packet of a `SOCK_SEQPACKET` socket.
//!
//! Reading is total on any bytes, takes no more memory than the message has, and gives only what is within the limits below. It leaves no
//! word of a request in memory that is freed: what a zygote forks later for others would have it. Pure: who may ask for what is left to the
//! policy.

use crate::namespaces::Namespace;
use rmp_serde::decode::{Deserializer, Error};
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use slowpath_process::{NO_ID, wipe};
use slowpath_seccomp::Program;
use std::fmt;

/// Bytes of a message at most: a socket's buffer takes 208 KiB (`net.core.wmem_default`), the kernel's bookkeeping included.
pub const MOST_BYTES: usize = 128 << 10;

/// Arguments of a child at most, and variables of its environment.
pub const MOST_WORDS: usize = 1024;

/// Descriptors that a child can be given.
pub const MOST_DESCRIPTORS: usize = 64;

/// The largest number that a descriptor of a child can have.
pub const HIGHEST_DESCRIPTOR: u32 = 255;

/// Supplementary groups of a child at most.
pub const MOST_GROUPS: usize = 256;

/// Bytes that are a string of C: an argument, or a variable with its value. No text need be in them. They are wiped when it goes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word(pub Vec<u8>);

impl Drop for Word {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl<T: AsRef<[u8]>> From<T> for Word {
    fn from(bytes: T) -> Self {
        Self(bytes.as_ref().to_owned())
    }
}

impl Serialize for Word {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Word;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Word, E> {
                Ok(Word(bytes.to_owned()))
            }
            // The error that serde has for these quotes the text.
            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Word, E> {
                Err(E::custom("text where bytes belong"))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Word, A::Error> {
                Err(A::Error::custom("a list where bytes belong"))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Who a child is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedIdentity {
    /// Real, effective and saved user id.
    pub uid: u32,
    /// Real, effective and saved group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// A filter that a child gets as the last step before its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedFilter {
    /// `struct sock_filter` after `struct sock_filter`.
    pub program: Word,
    /// Install it with `SECCOMP_FILTER_FLAG_SPEC_ALLOW`.
    pub allow_speculation: bool,
}

/// A child that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// What the child is given to do; the first is the name that it gets (`comm`), as of a program that is executed.
    pub arguments: Vec<Word>,
    /// `NAME=VALUE`, set over the zygote's own environment.
    pub environment: Vec<Word>,
    /// Who it is to be; none: who asks, or the zygote's own user where that is not root.
    pub identity: Option<AskedIdentity>,
    /// Namespaces of its own.
    pub namespaces: Vec<Namespace>,
    /// A filter of system calls.
    pub filter: Option<AskedFilter>,
    /// The number that each descriptor of the packet gets, in their order. Of 0, 1 and 2 those that are not named are `/dev/null`.
    pub descriptors: Vec<u32>,
    /// For measurements: instead of doing the work, write the pid (4 bytes of this machine's order) to descriptor 3, a socket, and again for
    /// each byte that comes; end when that is closed at the other end.
    pub probe: bool,
}

/// From a client, which waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromClient {
    /// Make a child. It ends with this connection. Answered with [`ToClient::Started`], and later [`ToClient::Ended`].
    Spawn(Box<SpawnRequest>),
    /// Send the child of this connection a signal. Not answered.
    Signal(i32),
    /// Stay, also without children, as long as this connection. Answered with [`ToClient::Status`].
    Hold,
    /// Say how it is. Answered with [`ToClient::Status`].
    Status,
}

/// To a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToClient {
    /// The child is what was asked for, and begins its work. A pidfd comes along.
    Started {
        /// Its process id in the zygote's pid namespace.
        pid: i32,
        /// It was a spare.
        from_spare: bool,
    },
    /// There is no child.
    Refused(Refusal),
    /// There is no child: a step of making it failed, and nothing of its work was done.
    Failed {
        /// The step.
        step: Step,
        /// The error of the system call.
        errno: i32,
    },
    /// How the child ended. The last message of a connection.
    Ended(Ending),
    /// How the zygote is.
    Status(Status),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalKind {
    /// The message is none, or beyond a limit.
    Malformed,
    /// The policy does not let this client ask, or not for that.
    NotAllowed,
    /// Not now: a limit of the policy or of the machine is reached.
    Busy,
    /// This zygote or this machine cannot do it.
    Cannot,
}

/// A refusal in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{why}")]
pub struct Refusal {
    /// Of which kind.
    pub kind: RefusalKind,
    /// Why, and what would be taken.
    pub why: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(kind: RefusalKind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }

    /// A message that is none.
    pub(crate) fn malformed(why: impl Into<String>) -> Self {
        Self::new(RefusalKind::Malformed, why)
    }
}

/// The steps of making a child, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Step {
    /// The process itself.
    Fork,
    /// A session of its own.
    Session,
    /// Namespaces.
    Namespaces,
    /// Its descriptors, and no others.
    Descriptors,
    /// Groups, group id, user id, capabilities.
    Identity,
    /// Its end with the zygote's.
    EndWithZygote,
    /// Its environment.
    Environment,
    /// `no_new_privs`.
    NoNewPrivileges,
    /// The filter of system calls.
    Filter,
}

impl Step {
    /// All, in their order.
    pub const ALL: [Self; 9] = [
        Self::Fork,
        Self::Session,
        Self::Namespaces,
        Self::Descriptors,
        Self::Identity,
        Self::EndWithZygote,
        Self::Environment,
        Self::NoNewPrivileges,
        Self::Filter,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fork => "making the process",
            Self::Session => "beginning a session",
            Self::Namespaces => "entering new namespaces",
            Self::Descriptors => "placing descriptors",
            Self::Identity => "taking on the identity",
            Self::EndWithZygote => "tying it to the zygote",
            Self::Environment => "setting the environment",
            Self::NoNewPrivileges => "setting no_new_privs",
            Self::Filter => "installing the seccomp filter",
        }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Killed(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// How a zygote is, in counts since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Its process id.
    pub pid: i32,
    /// Children that began their work.
    pub started: u64,
    /// Of these, those that were spares.
    pub from_spares: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Children that failed in a step before their work.
    pub failed: u64,
    /// Children alive, without spares.
    pub alive: u64,
    /// Connections.
    pub connections: u64,
    /// Spares that wait now.
    pub spares: u64,
    /// Spares that should wait, by the demand.
    pub spares_wanted: u64,
    /// Spares that were ended under memory pressure.
    pub spares_dropped: u64,
    /// Requests a second, as the sizing of spares takes it.
    pub arrivals_per_second: f64,
    /// From a fork until the child can begin its work, in ms, as the sizing of spares takes it; 0 before the first.
    pub start_ms: f64,
}

// A status holds no NaN: the two numbers are quotients of times above zero.
impl Eq for Status {}

/// The bytes of a message.
///
/// # Errors
/// It is longer than [`MOST_BYTES`].
pub fn encoded(message: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    let bytes = rmp_serde::to_vec(message).map_err(|error| Refusal::malformed(error.to_string()))?;
    if bytes.len() > MOST_BYTES {
        let text = format!("the request has {} bytes, and a message holds at most {MOST_BYTES}", bytes.len());
        return Err(Refusal::malformed(text));
    }
    Ok(bytes)
}

/// A message from bytes of anybody.
///
/// # Errors
/// They are none, or more than one.
pub fn decoded<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, Refusal> {
    if bytes.len() > MOST_BYTES {
        return Err(Refusal::malformed(format!("a message of more than {MOST_BYTES} bytes")));
    }
    // One for other readers than a slice copies what it reads into a buffer of its own.
    let mut deserializer = Deserializer::from_read_ref(bytes);
    let message = M::deserialize(&mut deserializer)
        .map_err(|error| Refusal::malformed(format!("the message cannot be read: {error}")))?;
    // Nothing can be read only where nothing is left.
    match <()>::deserialize(&mut deserializer) {
        Err(Error::InvalidMarkerRead(_)) => Ok(message),
        _ => Err(Refusal::malformed("bytes are left after the message")),
    }
}

/// A client's message, within the limits.
///
/// # Errors
/// It is none, or beyond a limit, which the refusal names.
pub fn request(bytes: &[u8]) -> Result<FromClient, Refusal> {
    let message = decoded(bytes)?;
    if let FromClient::Spawn(spawn) = &message {
        spawn.checked(|word| format!("a word of {} bytes", word.0.len()))?;
    }
    Ok(message)
}

impl SpawnRequest {
    /// Whether it is within the limits and means something.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), Refusal> {
        self.checked(|word| format!("{word:?}"))
    }

    /// The same, with what a refusal may show of a word.
    fn checked(&self, shown: impl Fn(&Word) -> String) -> Result<(), Refusal> {
        let words = self.arguments.len().max(self.environment.len());
        if words > MOST_WORDS {
            return Err(Refusal::malformed(format!("{words} words, and {MOST_WORDS} are taken")));
        }
        if let Some(word) = self.arguments.iter().chain(&self.environment).find(|word| word.0.contains(&0)) {
            return Err(Refusal::malformed(format!("a null byte in {}", shown(word))));
        }
        let is_variable = |word: &Word| word.0.iter().position(|byte| *byte == b'=').is_some_and(|at| at > 0);
        if let Some(word) = self.environment.iter().find(|word| !is_variable(word)) {
            return Err(Refusal::malformed(format!("{} is no NAME=VALUE", shown(word))));
        }
        if let Some(asked) = &self.identity {
            if asked.groups.len() > MOST_GROUPS {
                return Err(Refusal::malformed(format!("more than {MOST_GROUPS} groups")));
            }
            if [asked.uid, asked.gid].iter().chain(&asked.groups).any(|id| *id == NO_ID) {
                return Err(Refusal::malformed(format!("{NO_ID} is no id: to the kernel it means \"unchanged\"")));
            }
        }
        if let Some(twice) = repeated(&self.namespaces) {
            return Err(Refusal::malformed(format!("the namespace {} twice", twice.name())));
        }
        if let Some(filter) = &self.filter {
            Program::from_bytes(&filter.program.0).map_err(|error| Refusal::malformed(error.to_string()))?;
        }
        if self.descriptors.len() > MOST_DESCRIPTORS {
            return Err(Refusal::malformed(format!("more than {MOST_DESCRIPTORS} descriptors")));
        }
        if let Some(high) = self.descriptors.iter().find(|number| **number > HIGHEST_DESCRIPTOR) {
            return Err(Refusal::malformed(format!("descriptor {high}, and the highest is {HIGHEST_DESCRIPTOR}")));
        }
        if let Some(twice) = repeated(&self.descriptors) {
            return Err(Refusal::malformed(format!("descriptor {twice} twice")));
        }
        if self.probe && !self.descriptors.contains(&3) {
            return Err(Refusal::malformed("a probe without descriptor 3"));
        }
        Ok(())
    }
}

/// One that stands twice in a short list.
fn repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter().enumerate().find(|(index, one)| list[..*index].contains(one)).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spawn() -> SpawnRequest {
        SpawnRequest {
            arguments: vec!["job".into(), b"\xff".into()],
            environment: vec!["A=1".into()],
            identity: Some(AskedIdentity { uid: 1, gid: 2, groups: vec![3] }),
            namespaces: vec![Namespace::Network],
            filter: Some(AskedFilter { program: [6, 0, 0, 0, 0, 0, 0xff, 0x7f].into(), allow_speculation: true }),
            descriptors: vec![0, 3],
            probe: true,
        }
    }

    fn through(request: SpawnRequest) -> Result<FromClient, Refusal> {
        super::request(&encoded(&FromClient::Spawn(Box::new(request))).unwrap())
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        assert_eq!(through(spawn()).unwrap(), FromClient::Spawn(Box::new(spawn())));
    }

    #[test]
    fn what_is_beyond_a_limit_is_refused_with_the_limit() {
        let wrong = |change: fn(&mut SpawnRequest), words: &str| {
            let mut request = spawn();
            change(&mut request);
            let own = request.check().unwrap_err();
            let refusal = through(request).unwrap_err();
            for refusal in [&own, &refusal] {
                assert!(refusal.why.contains(words) && refusal.kind == RefusalKind::Malformed, "{words}: {refusal:?}");
            }
            [own.why, refusal.why]
        };
        wrong(|one| one.arguments = vec![Word::default(); MOST_WORDS + 1], "1025 words");
        // Who asks is shown the word, and nobody else has a copy of it.
        let [own, refusal] = wrong(|one| one.arguments.push(b"a\0b".into()), "a null byte in ");
        assert!(own.ends_with("a null byte in \"a\\x00b\"") && refusal.ends_with("a null byte in a word of 3 bytes"));
        wrong(|one| one.environment.push("NAME".into()), "no NAME=VALUE");
        wrong(|one| one.environment.push("=x".into()), "no NAME=VALUE");
        wrong(|one| one.identity.as_mut().unwrap().uid = NO_ID, "unchanged");
        wrong(|one| one.identity.as_mut().unwrap().groups = vec![1; MOST_GROUPS + 1], "groups");
        wrong(|one| one.namespaces.push(Namespace::Network), "the namespace network twice");
        wrong(|one| one.filter.as_mut().unwrap().program.0.truncate(7), "instructions");
        wrong(|one| one.descriptors = (0..65).collect(), "64 descriptors");
        wrong(|one| one.descriptors.push(3), "descriptor 3 twice");
        wrong(|one| one.descriptors.push(256), "the highest is 255");
        wrong(|one| one.descriptors = vec![0], "a probe without descriptor 3");
        let long =
            FromClient::Spawn(Box::new(SpawnRequest { arguments: vec![vec![1u8; MOST_BYTES].into()], ..spawn() }));
        assert!(encoded(&long).unwrap_err().why.contains("a message holds at most 131072"));
    }

    #[test]
    fn more_than_one_message_is_none() {
        let mut bytes = encoded(&FromClient::Hold).unwrap();
        assert_eq!(request(&bytes), Ok(FromClient::Hold));
        bytes.push(0);
        assert!(request(&bytes).unwrap_err().why.contains("bytes are left after the message"));
        assert!(request(&[]).is_err());
        // An array that claims 2^32-1 words, and bytes of which there is nothing.
        for hostile in [
            &[0x81, 0x00, 0x97, 0xdd, 0xff, 0xff, 0xff, 0xff][..],
            &[0x81, 0x00, 0x97, 0x91, 0xc6, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert!(request(hostile).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_within_the_limits_or_a_refusal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(FromClient::Spawn(spawn)) = request(&bytes) {
                prop_assert!(spawn.check().is_ok());
            }
        }

        #[test]
        fn a_request_with_changed_bytes_is_one_within_the_limits_or_a_refusal(at in 0usize..60, to in any::<u8>()) {
            let mut bytes = encoded(&FromClient::Spawn(Box::new(spawn()))).unwrap();
            let at = at % bytes.len();
            bytes[at] = to;
            if let Ok(FromClient::Spawn(spawn)) = request(&bytes) {
                prop_assert!(spawn.check().is_ok());
            }
        }
    }
}
