//! Whose each page of one address space is, where pages are touched one by one and given back by the range.
//!
//! Owns both forms: pages that were set by themselves stand in small groups, in which setting one more costs the same in any order;
//! all others in ranges, which may be as long as an address space. A page is in one of the two. A range that is given or taken as a whole
//! ends the groups inside it: each is made for a page that was set, and walked over by one such range.

use crate::memory::address_ranges::{AddressRanges, OwnedRange};
use slowpath_tables::PAGE_SIZE;
use std::collections::BTreeMap;
use std::ops::Range;

/// Pages of a group: few, so that pages far apart take little room.
const PAGES: usize = 16;
/// Bytes of a group.
const GROUP: u64 = PAGES as u64 * PAGE_SIZE;

/// The owners of the pages of one address space.
#[derive(Debug, Default)]
pub(crate) struct PageOwners {
    /// Groups by their number: address over [`GROUP`].
    groups: BTreeMap<u64, [Option<u32>; PAGES]>,
    /// What is in no group.
    ranges: AddressRanges,
}

impl PageOwners {
    /// Gives a page to an owner; whose it was.
    pub fn set(&mut self, address: u64, owner: u32) -> Option<u32> {
        self.place(address).replace(owner)
    }

    /// Takes a page from its owner; whose it was.
    pub fn take(&mut self, address: u64) -> Option<u32> {
        if let Some(group) = self.groups.get_mut(&(address / GROUP)) {
            return group[(address % GROUP / PAGE_SIZE) as usize].take();
        }
        self.ranges.part_at(address).and_then(|_| self.place(address).take())
    }

    /// The page's place in its group.
    fn place(&mut self, address: u64) -> &mut Option<u32> {
        let (number, ranges) = (address / GROUP, &mut self.ranges);
        let group = self.groups.entry(number).or_insert_with(|| {
            let mut group = [None; PAGES];
            let (from, to) = bounds(number);
            for part in ranges.take(from, to) {
                group[pages_of(number, part.from, part.to)].fill(Some(part.owner));
            }
            group
        });
        &mut group[(address % GROUP / PAGE_SIZE) as usize]
    }

    /// How many groups and ranges there are: so many are walked over at most.
    #[cfg(test)]
    pub fn pieces(&self) -> usize {
        self.groups.len() + self.ranges.between(0, u64::MAX).len()
    }

    /// Gives all pages of a range to an owner.
    pub fn fill(&mut self, from: u64, to: u64, owner: u32) {
        let (begin, end) = self.put(from, to, Some(owner));
        self.ranges.take(from, to);
        self.ranges.join(OwnedRange { from: begin, to: end, owner });
    }

    /// Takes all pages of a range from their owners.
    pub fn clear(&mut self, from: u64, to: u64) {
        self.put(from, to, None);
        self.ranges.take(from, to);
    }

    /// The same in the groups: those at the ends of the range, of which other pages stay. Others are no longer needed. What of the range
    /// lies in none then.
    fn put(&mut self, from: u64, to: u64, owner: Option<u32>) -> (u64, u64) {
        let (mut left, mut right) = (from, to);
        let mut inside = Vec::new();
        for (number, group) in self.groups.range_mut(numbers(from, to)) {
            let (begin, end) = bounds(*number);
            if from <= begin && end <= to {
                inside.push(*number);
                continue;
            }
            group[pages_of(*number, from, to)].fill(owner);
            (left, right) = (if begin < from { end } else { left }, if to < end { begin } else { right });
        }
        inside.iter().for_each(|number| _ = self.groups.remove(number));
        (left, right)
    }

    /// What lies between two addresses, in their order, neighbours of one owner as one.
    pub fn between(&self, from: u64, to: u64) -> Vec<OwnedRange> {
        let mut parts = self.ranges.between(from, to);
        for (number, group) in self.groups.range(numbers(from, to)) {
            let (begin, end) = bounds(*number);
            let page = |index: usize| {
                let page = begin + index as u64 * PAGE_SIZE;
                Some(OwnedRange { from: page, to: page.saturating_add(PAGE_SIZE).min(end), owner: group[index]? })
            };
            parts.extend(pages_of(*number, from, to).filter_map(page));
        }
        parts.sort_unstable_by_key(|part| part.from);
        parts.dedup_by(|next, last| {
            let is_one = last.to == next.from && last.owner == next.owner;
            if is_one {
                last.to = next.to;
            }
            is_one
        });
        parts
    }
}

/// First address of a group, and that after its last.
fn bounds(number: u64) -> (u64, u64) {
    let from = number * GROUP;
    (from, from.saturating_add(GROUP))
}

/// Numbers of the groups that a range reaches into; none for an empty one.
fn numbers(from: u64, to: u64) -> Range<u64> {
    from / GROUP..if from < to { to.div_ceil(GROUP) } else { from / GROUP }
}

/// Places in a group of the pages of a range that reaches into it.
fn pages_of(number: u64, from: u64, to: u64) -> Range<usize> {
    let (begin, end) = bounds(number);
    let first = (from.max(begin) - begin) / PAGE_SIZE;
    let last = (to.min(end).max(begin) - begin).div_ceil(PAGE_SIZE);
    first as usize..last.max(first) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_that_is_set_is_taken_out_of_its_range_and_the_others_stay() {
        let mut owners = PageOwners::default();
        owners.fill(0, 1 << 40, 1);
        assert_eq!((owners.set(PAGE_SIZE, 2), owners.set(PAGE_SIZE, 3)), (Some(1), Some(2)));
        let part = |from: u64, to: u64, owner| OwnedRange { from, to, owner };
        let all = [part(0, PAGE_SIZE, 1), part(PAGE_SIZE, 2 * PAGE_SIZE, 3), part(2 * PAGE_SIZE, 1 << 40, 1)];
        assert_eq!(owners.between(0, u64::MAX), all);
        owners.clear(0, u64::MAX);
        assert_eq!(owners.between(0, u64::MAX), []);
    }

    #[test]
    fn the_last_page_of_all_is_one() {
        let mut owners = PageOwners::default();
        owners.fill(0, u64::MAX, 1);
        assert_eq!(owners.set(u64::MAX, 2), Some(1));
        let last = u64::MAX - (PAGE_SIZE - 1);
        let parts = [OwnedRange { from: 0, to: last, owner: 1 }, OwnedRange { from: last, to: u64::MAX, owner: 2 }];
        assert_eq!(owners.between(0, u64::MAX), parts);
    }

    #[test]
    fn ranges_of_many_pages_that_were_set_walk_over_each_of_them_once() {
        let mut owners = PageOwners::default();
        let (pages, to) = (20_000, 20_000 * 3 * GROUP);
        for page in 0..pages {
            owners.set(page * 3 * GROUP + PAGE_SIZE, 1);
        }
        assert_eq!(owners.groups.len(), pages as usize);
        // Two thousand million steps, were each of them to walk over all groups.
        for round in 0..100_000u32 {
            // In the middle of the first group and of the last.
            let (from, to) = (2 * PAGE_SIZE, to - 3 * GROUP + PAGE_SIZE);
            if round % 2 == 0 {
                owners.fill(from, to, round);
            } else {
                owners.clear(from, to);
            }
            assert!(owners.groups.len() <= 2, "{} groups after {round} ranges", owners.groups.len());
        }
        let part = |from, to, owner| OwnedRange { from, to, owner };
        let last = to - 3 * GROUP + PAGE_SIZE;
        assert_eq!(owners.between(0, to), [part(PAGE_SIZE, 2 * PAGE_SIZE, 1), part(last, last + PAGE_SIZE, 1)]);
    }

    proptest! {
        #[test]
        fn each_page_has_the_owner_that_a_list_of_pages_tells(
            ops in prop::collection::vec((0u8..5, 0u64..60, 1u64..50, 0u32..3), 0..60),
        ) {
            let (mut owners, mut model) = (PageOwners::default(), BTreeMap::<u64, u32>::new());
            for (op, page, pages, owner) in ops {
                let (from, to) = (page * PAGE_SIZE, (page + pages) * PAGE_SIZE);
                match op {
                    0 => {
                        owners.fill(from, to, owner);
                        model.extend((page..page + pages).map(|page| (page, owner)));
                    }
                    1 => {
                        owners.clear(from, to);
                        model.retain(|one, _| !(page..page + pages).contains(one));
                    }
                    2 => prop_assert_eq!(owners.take(from + 7), model.remove(&page)),
                    _ => prop_assert_eq!(owners.set(from + 7, owner), model.insert(page, owner)),
                }
                let parts = owners.between(from, to);
                let owned = parts.iter().flat_map(|part| {
                    (part.from / PAGE_SIZE..part.to / PAGE_SIZE).map(|page| (page, part.owner))
                });
                let owned: Vec<(u64, u32)> = owned.collect();
                let expected: Vec<(u64, u32)> =
                    model.range(page..page + pages).map(|(page, owner)| (*page, *owner)).collect();
                prop_assert_eq!(owned, expected);
                let is_whole = |pair: &[OwnedRange]| pair[0].to < pair[1].from || pair[0].owner != pair[1].owner;
                prop_assert!(parts.windows(2).all(is_whole), "{:?}", parts);
            }
        }
    }
}
