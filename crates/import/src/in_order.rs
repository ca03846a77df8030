//! Events of several CPUs, each in order, as one sequence: held back in memory up to a limit, and given out the oldest first.

use crate::sorted_runs::SortedRuns;

/// Events until it is their turn.
#[derive(Debug)]
pub struct InOrder<T> {
    /// Events with their weights.
    held: SortedRuns<(usize, T)>,
    /// What those that are held weigh, and may.
    weight: usize,
    most: usize,
    /// Time of the last that was given out.
    given: u64,
    /// Events that came when later ones had been given out.
    pub late: u64,
}

impl<T> InOrder<T> {
    /// One that holds back events of this weight together.
    pub fn new(most: usize) -> Self {
        Self { held: SortedRuns::default(), weight: 0, most, given: 0, late: 0 }
    }

    /// Time of the last event that was given out.
    pub fn given(&self) -> u64 {
        self.given
    }

    /// Takes an event.
    pub fn add(&mut self, ts: u64, weight: usize, event: T) {
        self.late += u64::from(ts < self.given);
        self.weight = self.weight.saturating_add(weight);
        self.held.push(ts, (weight, event));
    }

    /// Those beyond the weight that is held back.
    pub fn ready(&mut self) -> Vec<T> {
        let mut ready = Vec::new();
        while self.weight > self.most
            && let Some(event) = self.next()
        {
            ready.push(event);
        }
        ready
    }

    /// Those of this time and before it.
    pub fn until(&mut self, ts: u64) -> Vec<T> {
        let mut ready = Vec::new();
        while self.held.first().is_some_and(|first| first <= ts)
            && let Some(event) = self.next()
        {
            ready.push(event);
        }
        ready
    }

    /// All, one after the other.
    pub fn finish(&mut self) -> impl Iterator<Item = T> + use<T> {
        let mut all = std::mem::take(&mut self.held);
        self.weight = 0;
        std::iter::from_fn(move || all.pop().map(|(_, (_, event))| event))
    }

    fn next(&mut self) -> Option<T> {
        let (ts, (weight, event)) = self.held.pop()?;
        self.given = self.given.max(ts);
        self.weight = self.weight.saturating_sub(weight);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_come_first_and_late_ones_are_counted() {
        let mut order = InOrder::new(3);
        for (ts, event) in [(30, 'c'), (10, 'a'), (20, 'b'), (20, 'B'), (40, 'd')] {
            order.add(ts, 1, event);
        }
        assert_eq!((order.ready(), order.late), (vec!['a', 'b'], 0));
        assert_eq!(order.until(30), ['B', 'c']);
        order.add(25, 1, 'x');
        assert_eq!((order.late, order.finish().collect::<String>().as_str()), (1, "xd"));
    }
}
