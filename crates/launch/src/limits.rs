//! Resource limits of the target.

use std::fmt;
use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// One resource limit, in the unit of `setrlimit(2)`; `u64::MAX` is "unlimited".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Which resource.
    pub kind: LimitKind,
    /// The soft limit.
    pub soft: u64,
    /// The hard limit.
    pub hard: u64,
}

/// A resource of `setrlimit(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are those of setrlimit(2)")]
pub enum LimitKind {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nproc,
    Rss,
    Rtprio,
    Rttime,
    Sigpending,
    Stack,
}

impl LimitKind {
    fn resource(self) -> Resource {
        match self {
            Self::As => Resource::RLIMIT_AS,
            Self::Core => Resource::RLIMIT_CORE,
            Self::Cpu => Resource::RLIMIT_CPU,
            Self::Data => Resource::RLIMIT_DATA,
            Self::Fsize => Resource::RLIMIT_FSIZE,
            Self::Locks => Resource::RLIMIT_LOCKS,
            Self::Memlock => Resource::RLIMIT_MEMLOCK,
            Self::Msgqueue => Resource::RLIMIT_MSGQUEUE,
            Self::Nice => Resource::RLIMIT_NICE,
            Self::Nofile => Resource::RLIMIT_NOFILE,
            Self::Nproc => Resource::RLIMIT_NPROC,
            Self::Rss => Resource::RLIMIT_RSS,
            Self::Rtprio => Resource::RLIMIT_RTPRIO,
            Self::Rttime => Resource::RLIMIT_RTTIME,
            Self::Sigpending => Resource::RLIMIT_SIGPENDING,
            Self::Stack => Resource::RLIMIT_STACK,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}:{}", self.kind.resource(), self.soft, self.hard)
    }
}

impl Limit {
    pub(crate) fn apply(self) -> io::Result<()> {
        Ok(setrlimit(self.kind.resource(), self.soft, self.hard)?)
    }
}

/// Those limits of the calling process: to be taken before it raises its own (for BPF, for descriptors), and given to
/// its targets.
pub fn current_limits(kinds: &[LimitKind]) -> Vec<Limit> {
    let read = |kind: &LimitKind| getrlimit(kind.resource()).ok().map(|(soft, hard)| Limit { kind: *kind, soft, hard });
    kinds.iter().filter_map(read).collect()
}
