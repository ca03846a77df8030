//! Spare children: forked ahead of a request, and made what it asks for when it comes.
//!
//! A spare has no work, no identity and no descriptors of anybody; it ends with the zygote. What it saves is the fork, which copies the page
//! tables of what is preloaded, and the CPU time of a moment when nobody waits.

mod spawning;

use crate::connection::Process;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long no spare is made after memory was short.
const AFTER_PRESSURE: Duration = Duration::from_secs(10);

/// How long no spare is made after one could not be made.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// How often the demand is looked at when nothing happens.
const LOOK: Duration = Duration::from_secs(1);

/// One that waits.
#[derive(Debug)]
struct Spare {
    process: Process,
    channel: OwnedFd,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    waiting: Vec<Spare>,
    /// Told to end, and not reaped yet.
    ending: Vec<Process>,
    not_before: Option<Instant>,
    pub(crate) dropped: u64,
}

impl Spares {
    pub(crate) fn count(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.waiting.is_empty() && self.ending.is_empty()
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.waiting.iter().map(|one| &one.process).chain(&self.ending)
    }

    /// Ends all: their memory is needed, or the zygote ends.
    pub(crate) fn drop_all(&mut self, now: Instant) {
        self.dropped += self.waiting.len() as u64;
        self.not_before = Some(now + AFTER_PRESSURE);
        self.end_down_to(0);
    }

    fn end_down_to(&mut self, count: usize) {
        while self.waiting.len() > count {
            if let Some(spare) = self.waiting.pop() {
                spare.process.signal(libc::SIGKILL);
                self.ending.push(spare.process);
            }
        }
    }

    /// Forgets those that have ended.
    pub(crate) fn reap(&mut self) {
        self.waiting.retain(|one| one.process.ended().is_none());
        self.ending.retain(|one| one.ended().is_none());
    }

    /// When the next one is to be made, or one too many ended.
    pub(crate) fn next(&self, now: Instant, wanted: u32) -> Option<Instant> {
        if self.waiting.len() < wanted as usize {
            return Some(self.not_before.map_or(now, |not_before| not_before.max(now)));
        }
        (self.waiting.len() > wanted as usize).then_some(now + LOOK)
    }
}
