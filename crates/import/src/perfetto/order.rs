//! Events of several CPUs, each in order, as one sequence: held back in memory up to a number, and given out the oldest first.

use slowpath_tables::PageCacheOp;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events that are held back: those of some seconds of a busy phone, and less than 100 MB.
const HELD: usize = 1 << 20;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Another thread runs.
    Switch {
        /// Who ran before, where the event says it.
        prev: Option<u32>,
        /// State of that one.
        state: &'static str,
        /// Who runs; none is the idle task.
        next: Option<u32>,
        /// Its name.
        name: String,
    },
    /// A thread was woken.
    Woken(u32),
    /// A thread waits for storage.
    Storage(u32),
    /// A page entered or left the page cache: device, inode, index.
    Page(PageCacheOp, (u64, u64, u64)),
    /// A request to a block device: device, sector, bytes, whether it reads.
    Issue((u64, u64, u64, bool)),
    /// The same when it is complete.
    Complete((u64, u64, u64, bool)),
    /// A new task; whether it is a thread of the process.
    New(u32, bool),
    /// A program is executed.
    Exec(String),
    /// A thread ended.
    Exit(u32),
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub ts: u64,
    /// The running thread, where the event says it.
    pub tid: Option<u32>,
    /// Where.
    pub cpu: u32,
    /// What.
    pub what: What,
}

#[derive(Debug, PartialEq, Eq)]
struct Held {
    event: Event,
    number: u64,
}

impl Ord for Held {
    /// The oldest is the greatest; of one moment the one that came first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.event.ts, other.number).cmp(&(self.event.ts, self.number))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Events until it is their turn.
#[derive(Debug, Default)]
pub struct InOrder {
    held: BinaryHeap<Held>,
    added: u64,
    /// Time of the last that was given out.
    given: u64,
    /// Events that came when later ones had been given out.
    pub late: u64,
}

impl InOrder {
    /// Takes an event.
    pub fn add(&mut self, event: Event) {
        self.late += u64::from(event.ts < self.given);
        self.added += 1;
        self.held.push(Held { event, number: self.added });
    }

    /// Those beyond the number that is held back.
    pub fn ready(&mut self) -> Vec<Event> {
        let beyond = self.held.len().saturating_sub(HELD);
        (0..beyond).filter_map(|_| self.next()).collect()
    }

    /// All, one after the other.
    pub fn finish(&mut self) -> impl Iterator<Item = Event> + use<> {
        let mut all = std::mem::take(&mut self.held);
        std::iter::from_fn(move || all.pop().map(|held| held.event))
    }

    fn next(&mut self) -> Option<Event> {
        let event = self.held.pop()?.event;
        self.given = self.given.max(event.ts);
        Some(event)
    }
}
