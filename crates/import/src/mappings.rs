//! Which code is mapped where in which process, by perf's records of mappings, forks and execs.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Mappings that are kept at a time; those beyond are not known.
const MOST_MAPPINGS: usize = 1 << 20;
/// Processes that have some.
const MOST_PROCESSES: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Mapping<T> {
    end: u64,
    offset: u64,
    code: T,
}

/// Mappings of a process by first address.
type Space<T> = BTreeMap<u64, Mapping<T>>;

/// The mappings of all processes. A child shares those of its parent until either maps something.
#[derive(Debug)]
pub struct Mappings<T> {
    spaces: HashMap<u32, Rc<Space<T>>>,
    /// Those in memory: shared ones once.
    count: usize,
}

impl<T> Default for Mappings<T> {
    fn default() -> Self {
        Self { spaces: HashMap::new(), count: 0 }
    }
}

impl<T: Copy> Mappings<T> {
    /// A process mapped `length` bytes of this code at `from`, beginning at `offset` of its file. What began there is gone.
    pub fn map(&mut self, pid: u32, (from, length): (u64, u64), offset: u64, code: T) {
        if length == 0 || (self.spaces.len() >= MOST_PROCESSES && !self.spaces.contains_key(&pid)) {
            return;
        }
        let end = from.saturating_add(length);
        let space = self.spaces.entry(pid).or_default();
        let copied = if Rc::strong_count(space) > 1 { space.len() } else { 0 };
        if self.count.saturating_add(copied) >= MOST_MAPPINGS {
            return;
        }
        let space = Rc::make_mut(space);
        let before = space.len() - copied;
        let covered: Vec<u64> = space.range(from..end).map(|(at, _)| *at).collect();
        for at in covered {
            space.remove(&at);
        }
        space.insert(from, Mapping { end, offset, code });
        self.count = self.count.saturating_sub(before).saturating_add(space.len());
    }

    /// A process was forked, and has what its parent has.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if parent == child {
            return;
        }
        if let Some(space) = self.spaces.get(&parent).cloned() {
            self.forget(child);
            if self.spaces.len() < MOST_PROCESSES {
                self.spaces.insert(child, space);
            }
        }
    }

    /// A process ended, or runs another program.
    pub fn forget(&mut self, pid: u32) {
        if let Some(space) = self.spaces.remove(&pid).and_then(Rc::into_inner) {
            self.count = self.count.saturating_sub(space.len());
        }
    }

    /// The code at an address, and its offset in its file.
    pub fn at(&self, pid: u32, address: u64) -> Option<(T, u64)> {
        let (from, mapping) = self.spaces.get(&pid)?.range(..=address).next_back()?;
        (address < mapping.end).then(|| (mapping.code, mapping.offset.saturating_add(address - from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_the_mappings_of_its_parent_until_it_maps_or_executes() {
        let mut mappings = Mappings::default();
        mappings.map(7, (0x1000, 0x1000), 0x500, 'a');
        mappings.fork(7, 8);
        assert_eq!(mappings.at(8, 0x1010), Some(('a', 0x510)));
        mappings.map(8, (0x800, 0x1000), 0, 'b');
        assert_eq!((mappings.at(8, 0x1010), mappings.at(7, 0x1010)), (Some(('b', 0x810)), Some(('a', 0x510))));
        assert_eq!(mappings.count, 2);
        mappings.forget(7);
        assert_eq!((mappings.at(7, 0x1010), mappings.count), (None, 1));
        mappings.fork(8, 9);
        mappings.forget(8);
        assert_eq!((mappings.at(9, 0x17ff), mappings.at(9, 0x1800), mappings.count), (Some(('b', 0xfff)), None, 1));
        mappings.forget(9);
        assert_eq!(mappings.count, 0);
    }

    #[test]
    fn addresses_at_the_ends_of_the_range_are_no_mappings_without_bytes() {
        let mut mappings = Mappings::default();
        mappings.map(7, (u64::MAX, u64::MAX), u64::MAX, 'a');
        mappings.map(7, (0, 0), 0, 'b');
        assert_eq!((mappings.at(7, 0), mappings.at(7, u64::MAX)), (None, None));
    }
}
