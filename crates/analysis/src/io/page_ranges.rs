//! Pages that were read, as ranges: a trace from elsewhere can claim a request of any size, so what is kept and computed grows with
//! the requests and never with their pages.

use std::ops::Range;

/// Ranges of page numbers; a page that was read twice is in two of them.
#[derive(Clone, Debug, Default)]
pub struct PageRanges {
    ranges: Vec<Range<u64>>,
    count: u64,
}

impl PageRanges {
    /// Adds pages; an empty range is nothing.
    pub fn add(&mut self, pages: Range<u64>) {
        if pages.start < pages.end {
            self.count = self.count.saturating_add(pages.end - pages.start);
            self.ranges.push(pages);
        }
    }

    /// All pages; one that was added twice counts twice.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The same, to be asked about parts of the file.
    pub fn sorted(&self) -> SortedPages {
        let mut sorted = self.ranges.clone();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut apart: Vec<Range<u64>> = Vec::new();
        for range in &sorted {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => apart.push(range.clone()),
            }
        }
        let mut ends: Vec<u64> = sorted.iter().map(|range| range.end).collect();
        ends.sort_unstable();
        SortedPages { starts: Bounds::new(sorted.into_iter().map(|range| range.start)), ends: Bounds::new(ends), apart }
    }
}

/// Pages that were read, in their order in the file.
#[derive(Clone, Debug)]
pub struct SortedPages {
    starts: Bounds,
    ends: Bounds,
    /// Each page once.
    apart: Vec<Range<u64>>,
}

impl SortedPages {
    /// How many reads of these pages there were.
    pub fn count(&self, pages: &Range<u64>) -> u64 {
        // Of a range that begins below a page, what lies below it, without what would lie below it behind the range's end.
        let below = |page: u64| self.starts.distance(page) - self.ends.distance(page);
        if pages.is_empty() {
            return 0;
        }
        u64::try_from(below(pages.end) - below(pages.start)).unwrap_or(u64::MAX)
    }

    /// How many of these pages were read.
    pub fn different(&self, pages: &Range<u64>) -> u64 {
        if pages.is_empty() {
            return 0;
        }
        let first = self.apart.partition_point(|range| range.end <= pages.start);
        let reached = self.apart[first..].iter().take_while(|range| range.start < pages.end);
        reached.map(|range| range.end.min(pages.end) - range.start.max(pages.start)).sum()
    }

    /// How many pages were read that are not among `needed`, which may be in any order and repeat themselves.
    pub fn unneeded(&self, needed: &[u64]) -> u64 {
        self.different(&(0..u64::MAX)) - self.held(needed)
    }

    /// How many different ones of `pages` were read.
    pub fn held(&self, pages: &[u64]) -> u64 {
        let mut pages = pages.to_vec();
        pages.sort_unstable();
        pages.dedup();
        pages.retain(|page| {
            let after = self.apart.partition_point(|range| range.start <= *page);
            self.apart[..after].last().is_some_and(|range| *page < range.end)
        });
        pages.len() as u64
    }
}

/// Page numbers in order, each with the sum of those before it.
#[derive(Clone, Debug)]
struct Bounds {
    pages: Vec<(u64, u128)>,
    sum: u128,
}

impl Bounds {
    fn new(sorted: impl IntoIterator<Item = u64>) -> Self {
        let mut sum = 0;
        let add = |page: u64| {
            let before = sum;
            sum += u128::from(page);
            (page, before)
        };
        let pages = sorted.into_iter().map(add).collect();
        Self { pages, sum }
    }

    /// How far those below `page` lie below it, together.
    fn distance(&self, page: u64) -> u128 {
        let count = self.pages.partition_point(|(one, _)| *one < page);
        let sum = self.pages.get(count).map_or(self.sum, |(_, before)| *before);
        u128::from(page) * count as u128 - sum
    }
}

#[cfg(test)]
mod tests {
    use super::{PageRanges, SortedPages};
    use proptest::prelude::*;

    fn of(ranges: &[(u64, u64)]) -> PageRanges {
        let mut all = PageRanges::default();
        ranges.iter().for_each(|(from, to)| all.add(*from..*to));
        all
    }

    #[test]
    fn pages_that_were_read_twice_count_twice_and_are_unneeded_once() {
        let read = of(&[(4, 8), (0, 2), (6, 10), (2, 3), (5, 5)]);
        assert_eq!(read.count(), 4 + 2 + 4 + 1);
        let read = read.sorted();
        assert_eq!(read.unneeded(&[]), 9);
        // 3 was never read, 9 is the last of its range, 10 lies behind it; 4 is named twice.
        assert_eq!(read.unneeded(&[9, 4, 3, 10, 4, 0]), 6);
    }

    #[test]
    fn requests_of_any_size_are_counted_and_not_walked() {
        let read = of(&[(0, u64::MAX), (1, u64::MAX), (7, u64::MAX - 1)]);
        assert_eq!(read.count(), u64::MAX);
        let read = read.sorted();
        assert_eq!((read.count(&(0..8)), read.count(&(0..u64::MAX))), (8 + 7 + 1, u64::MAX));
        assert_eq!(read.unneeded(&[0, 1, u64::MAX]), u64::MAX - 2);
    }

    proptest! {
        #[test]
        fn parts_have_what_every_single_page_says(
            ranges in prop::collection::vec((0u64..40, 0u64..40), 0..12),
            (from, to) in (0u64..45, 0u64..45),
        ) {
            let read: SortedPages = of(&ranges).sorted();
            let times = |page: u64| ranges.iter().filter(|(from, to)| (*from..*to).contains(&page)).count() as u64;
            prop_assert_eq!(read.count(&(from..to)), (from..to).map(times).sum::<u64>());
            prop_assert_eq!(read.different(&(from..to)), (from..to).filter(|page| times(*page) > 0).count() as u64);
            let pages: Vec<u64> = (from..to).collect();
            prop_assert_eq!(read.held(&pages), read.different(&(from..to)));
        }
    }
}
