//! A queue by time for what comes from a few sources, each nearly in order: switches of each CPU, records of each ring buffer.
//!
//! It is made of runs: queues whose items came in order. A heap has the first item's time of each run, so that taking an item moves a few
//! small entries, where a heap of all items moves twenty large ones that no cache holds. Nobody says which source an item is from. It goes
//! to the run with the latest end that is not after it, which makes no more runs than there are sources (patience sorting). What fits no
//! run when there are as many as may be goes to a plain heap: whatever the order, adding and taking are logarithmic.

use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// Runs at most.
const MOST_RUNS: usize = 1024;
/// Items that a run keeps in one piece of memory, which goes when they are taken.
const PIECE: usize = 512;

#[derive(Debug)]
struct Held<T> {
    ts: u64,
    number: u64,
    item: T,
}

impl<T> Held<T> {
    /// Those of one moment have the order in which they came.
    fn key(&self) -> (u64, u64) {
        (self.ts, self.number)
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Held<T> {}

/// Items in order. No piece is empty.
#[derive(Debug)]
struct Run<T> {
    pieces: VecDeque<VecDeque<Held<T>>>,
}

impl<T> Run<T> {
    fn push(&mut self, held: Held<T>) {
        if let Some(last) = self.pieces.back_mut().filter(|last| last.len() < PIECE) {
            last.push_back(held);
        } else {
            // The first piece of a short run is small.
            let mut piece = VecDeque::with_capacity(if self.pieces.is_empty() { 0 } else { PIECE });
            piece.push_back(held);
            self.pieces.push_back(piece);
        }
    }

    fn first(&self) -> Option<&Held<T>> {
        self.pieces.front()?.front()
    }

    fn pop(&mut self) -> Option<Held<T>> {
        let piece = self.pieces.front_mut()?;
        let held = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        held
    }
}

/// Items by their time; those of one moment in the order in which they came.
#[derive(Debug)]
pub struct SortedRuns<T> {
    runs: Vec<Run<T>>,
    most_runs: usize,
    /// Time of the last item that each run was given, and the number of the run: the earliest first.
    ends: Vec<(u64, usize)>,
    /// Key of the first item of each run that has one, and the number of the run.
    firsts: BinaryHeap<Reverse<((u64, u64), usize)>>,
    /// What fits no run.
    strays: BinaryHeap<Reverse<Held<T>>>,
    added: u64,
}

impl<T> Default for SortedRuns<T> {
    fn default() -> Self {
        Self::with_runs(MOST_RUNS)
    }
}

impl<T> SortedRuns<T> {
    fn with_runs(most_runs: usize) -> Self {
        Self {
            runs: Vec::new(),
            most_runs,
            ends: Vec::new(),
            firsts: BinaryHeap::new(),
            strays: BinaryHeap::new(),
            added: 0,
        }
    }

    /// Takes an item.
    pub fn push(&mut self, ts: u64, item: T) {
        self.added += 1;
        let held = Held { ts, number: self.added, item };
        let behind = self.ends.partition_point(|(end, _)| *end <= ts);
        let number = if let Some(end) = behind.checked_sub(1).and_then(|at| self.ends.get_mut(at)) {
            // The order of the ends stays: the next one is later than this item.
            end.0 = ts;
            end.1
        } else if self.runs.len() < self.most_runs {
            let number = self.runs.len();
            self.runs.push(Run { pieces: VecDeque::new() });
            self.ends.insert(0, (ts, number));
            number
        } else {
            self.strays.push(Reverse(held));
            return;
        };
        let run = &mut self.runs[number];
        if run.pieces.is_empty() {
            self.firsts.push(Reverse((held.key(), number)));
        }
        run.push(held);
    }

    /// Time of the first item.
    pub fn first(&self) -> Option<u64> {
        let first = self.firsts.peek().map(|Reverse(((ts, _), _))| *ts);
        let stray = self.strays.peek().map(|Reverse(held)| held.ts);
        first.into_iter().chain(stray).min()
    }

    /// Gives out the first item, with its time.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let stray = self.strays.peek().map(|Reverse(held)| held.key());
        let held = match self.firsts.peek_mut() {
            Some(mut first) if stray.is_none_or(|stray| first.0.0 < stray) => {
                let run = &mut self.runs[first.0.1];
                let held = run.pop();
                match run.first() {
                    Some(next) => first.0.0 = next.key(),
                    None => {
                        PeekMut::pop(first);
                    }
                }
                held
            }
            _ => self.strays.pop().map(|Reverse(held)| held),
        };
        held.map(|held| (held.ts, held.item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all<T>(runs: &mut SortedRuns<T>) -> Vec<(u64, T)> {
        std::iter::from_fn(|| runs.pop()).collect()
    }

    proptest! {
        #[test]
        fn items_come_by_time_and_those_of_one_moment_as_they_came(
            steps in proptest::collection::vec((0u64..40, 0usize..3), 0..400),
            most_runs in 0usize..6,
        ) {
            let (mut runs, mut plain) = (SortedRuns::with_runs(most_runs), Vec::new());
            for (item, (ts, taken)) in steps.into_iter().enumerate() {
                runs.push(ts, item);
                plain.push((ts, item));
                plain.sort();
                for _ in 0..taken {
                    prop_assert_eq!(runs.first(), plain.first().map(|(ts, _)| *ts));
                    let expected = (!plain.is_empty()).then(|| plain.remove(0));
                    prop_assert_eq!(runs.pop(), expected);
                }
            }
            prop_assert!(runs.runs.len() <= most_runs);
            prop_assert_eq!(all(&mut runs), plain);
        }

        #[test]
        fn there_are_no_more_runs_than_sources(steps in proptest::collection::vec((0usize..5, 0u64..50), 0..400)) {
            let (mut runs, mut times) = (SortedRuns::default(), [0; 5]);
            for (source, later) in steps {
                times[source] += later;
                runs.push(times[source], source);
            }
            prop_assert!(runs.runs.len() <= times.len());
            prop_assert!(runs.strays.is_empty());
        }
    }

    #[test]
    fn in_reverse_or_before_the_ends_of_all_runs_memory_and_work_stay_bounded() {
        const ITEMS: u64 = 300_000;
        let mut runs = SortedRuns::default();
        for ts in (ITEMS..2 * ITEMS).rev() {
            runs.push(ts, ());
        }
        assert_eq!((runs.runs.len(), runs.strays.len()), (MOST_RUNS, ITEMS as usize - MOST_RUNS));
        for ts in 0..ITEMS {
            runs.push(ts, ());
        }
        assert_eq!(runs.runs.len(), MOST_RUNS);
        assert!(all(&mut runs).into_iter().map(|(ts, ())| ts).eq(0..2 * ITEMS));
    }

    #[test]
    fn what_was_taken_takes_no_memory() {
        let mut runs = SortedRuns::default();
        for ts in 0..100 * PIECE as u64 {
            runs.push(ts, ());
        }
        runs.push(u64::MAX, ());
        while runs.first() != Some(u64::MAX) {
            runs.pop();
        }
        let kept: usize = runs.runs.iter().flat_map(|run| &run.pieces).map(VecDeque::capacity).sum();
        assert!(kept <= PIECE, "{kept}");
    }
}
