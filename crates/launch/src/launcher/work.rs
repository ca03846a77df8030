//! What the guardian hands down to the observer and the target: the order, what was opened for it, and since when the observer looks at
//! what a process of the launch can hold back.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::order::Order;
use crate::sys;

/// How long the observer may look at the memory of a launch's processes. A process can hold the lock of its own memory map for ever (a
/// page of a FUSE file that its server does not send), and who reads its `smaps_rollup` waits for it. The wait ends by a kill, which
/// only another process can send: a thread or a child that reads would cost every launch 0.15 or 1 ms (bench/launch-cost). Where
/// nobody holds anything, all of it takes less than 1 ms.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// What the guardian hands down.
pub(super) struct Work {
    pub(super) order: Order,
    /// Opened outside the namespaces, written to by the target.
    pub(super) cgroups: Vec<(PathBuf, File)>,
    /// What they count.
    pub(super) counters: Vec<File>,
    /// When the observer began to look at the memory of processes, or at what the target makes; 0 while it does not. Shared with the guardian.
    pub(super) looks_since: &'static AtomicU64,
}

impl Work {
    /// Looks at what a process can hold back, with the guardian watching.
    pub(super) fn looking<T>(&self, look: impl FnOnce() -> T) -> T {
        self.looks_since.store(sys::monotonic(), Ordering::Relaxed);
        let seen = look();
        self.looks_since.store(0, Ordering::Relaxed);
        seen
    }

    /// Whether the observer has looked for longer than it may.
    pub(super) fn looks_too_long(&self) -> bool {
        let since = self.looks_since.load(Ordering::Relaxed);
        since != 0 && Duration::from_nanos(sys::monotonic().saturating_sub(since)) > LONGEST_LOOK
    }
}
