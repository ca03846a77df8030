//! How long a fallback took, and how long siblings took that had no need of it.
//!
//! Owns both measures. *Alone* it is the time from the open to the end of the work. *Compared* it is that time less what a sibling, another
//! process of the same program that could open the same path, took from there to the same next open that both make (or to the end of both
//! threads): what follows in both cancels out, and what reading the artifact costs is taken off.

use super::open_call::reads;
use super::{Fallback, Threads};
use crate::io::opening_threads::Taken;
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::{HashMap, HashSet};

/// Siblings that one fallback is compared with, at most.
const MOST_SIBLINGS: usize = 16;

/// Opens of a thread in which the one that both make is looked for.
const MOST_OPENS: usize = 1024;

/// Who could open a path: numbers of a thread and of its open.
pub(crate) struct Readers<'a>(HashMap<&'a str, Vec<(usize, usize)>>);

impl<'a> Threads<'a> {
    /// What the work took.
    pub fn alone(&self, fallback: &Fallback<'_>) -> Taken {
        self.all.taken(fallback.thread, fallback.open.ts, fallback.ended)
    }

    /// What it took up to the last file that was read instead.
    pub fn to_last_read(&self, fallback: &Fallback<'_>) -> Taken {
        self.all.taken(fallback.thread, fallback.open.ts, fallback.last_read)
    }

    /// Who could open what these could not use.
    pub fn readers(&self, fallbacks: &[Fallback<'a>]) -> Readers<'a> {
        let mut readers: HashMap<&str, Vec<(usize, usize)>> =
            fallbacks.iter().map(|one| (one.artifact(), Vec::new())).collect();
        for (number, thread) in self.all.threads.iter().enumerate() {
            for (at, open) in thread.opens.iter().enumerate().filter(|(_, open)| reads(open) && open.result >= 0) {
                if let Some(known) = readers.get_mut(open.path.as_str()) {
                    known.push((number, at));
                }
            }
        }
        Readers(readers)
    }

    /// What the work took more than siblings needed, for each of them. `is_sibling` says which processes run the same program.
    pub fn compared(
        &self,
        fallback: &Fallback<'a>,
        readers: &Readers<'a>,
        is_sibling: impl Fn(ProcessKey) -> bool,
    ) -> Vec<Taken> {
        let known = readers.0.get(fallback.artifact()).map(Vec::as_slice).unwrap_or_default();
        // One that opens it twice is one sibling.
        let mut seen = HashSet::new();
        let known = known.iter().filter(|(number, _)| {
            let process = self.all.threads[*number].process;
            is_sibling(process) && seen.insert(process)
        });
        known.take(MOST_SIBLINGS).filter_map(|(number, at)| self.difference(fallback, *number, *at)).collect()
    }

    fn difference(&self, fallback: &Fallback<'_>, sibling: usize, at: usize) -> Option<Taken> {
        let (own, other) = (&self.all.threads[fallback.thread], &self.all.threads[sibling]);
        let begin = other.opens.get(at)?.ts;
        let mut later: HashMap<&str, Nanos> = HashMap::new();
        for open in other.opens.iter().skip(at + 1).take(MOST_OPENS) {
            later.entry(&open.path).or_insert(open.ts);
        }
        let (own_limit, other_limit) = (self.all.limit(own, fallback.open.ts), self.all.limit(other, begin));
        let after = own.opens.iter().skip(fallback.next).take(MOST_OPENS).take_while(|open| open.ts < own_limit);
        let same = after.filter_map(|open| Some((open.ts, *later.get(open.path.as_str())?)));
        let (own_end, other_end) =
            same.into_iter().find(|(_, end)| *end < other_limit).unwrap_or((own_limit, other_limit));
        let own = self.all.taken(fallback.thread, fallback.open.ts, own_end);
        Some(own.less(self.all.taken(sibling, begin, other_end)))
    }
}
